-- name: queue_tenants
-- MIN does not seek in the index here when its bound comes from another row, so the queue's index is read once instead.
SELECT t.name, f.parallel_runs, (SELECT COUNT(*) FROM run_place p WHERE p.tenant = t.name)
FROM (SELECT q.tenant FROM run q WHERE q.state = 'queued' AND q.home = '' GROUP BY q.tenant) w
  JOIN tenant t ON t.name = w.tenant JOIN tariff f ON f.name = t.tariff
WHERE t.suspended = 0 AND t.deleting = 0 AND (f.parallel_runs = 0 OR (SELECT COUNT(*) FROM run_place p WHERE p.tenant = t.name) < f.parallel_runs)
