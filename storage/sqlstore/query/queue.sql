-- name: place_list
-- Active runs with their places, and whether their tenants are served.
SELECT p.tenant, p.n, q.id, q.state, q.home, q.concurrency, q.served, f.workers,
  CASE WHEN t.suspended = 0 AND t.deleting = 0 AND q.deleting = 0 THEN 1 ELSE 0 END
FROM run_place p JOIN run q ON q.id = p.run_id JOIN tenant t ON t.name = p.tenant JOIN tariff f ON f.name = t.tariff
WHERE q.state IN ('preparing', 'crawling', 'finishing')

-- name: queue_tenants
-- Served tenants that have queued runs for all nodes, and a place free for one of them: with the limit of places and those taken.
-- They are found one by one in the index, however many runs wait.
WITH RECURSIVE w (tenant) AS (
  SELECT (SELECT MIN(q.tenant) FROM run q WHERE q.state = 'queued' AND q.home = '')
  UNION ALL
  SELECT (SELECT MIN(q.tenant) FROM run q WHERE q.state = 'queued' AND q.home = '' AND q.tenant > w.tenant) FROM w WHERE w.tenant IS NOT NULL
)
SELECT t.name, f.parallel_runs, (SELECT COUNT(*) FROM run_place p WHERE p.tenant = t.name)
FROM w JOIN tenant t ON t.name = w.tenant JOIN tariff f ON f.name = t.tariff
WHERE t.suspended = 0 AND t.deleting = 0 AND (f.parallel_runs = 0 OR (SELECT COUNT(*) FROM run_place p WHERE p.tenant = t.name) < f.parallel_runs)

-- name: queue_heads
-- rows: tenant text, n int
-- The oldest queued runs of tenants, for all nodes.
SELECT q.id, q.tenant, q.home, q.served FROM run q
WHERE q.state = 'queued' AND q.home = '' AND q.tenant = :tenant AND q.deleting = 0 ORDER BY q.id LIMIT :n

-- name: queue_reserved
-- Queued runs that are reserved for one node, with the limit of places.
SELECT q.id, q.tenant, q.home, q.served, f.parallel_runs FROM run q JOIN tenant t ON t.name = q.tenant JOIN tariff f ON f.name = t.tariff
WHERE q.state = 'queued' AND q.home > '' AND t.suspended = 0 AND t.deleting = 0 AND q.deleting = 0

-- name: run_hold
-- in: run int
-- Locks a run.
UPDATE run SET served = served WHERE id = :run

-- name: places_of
-- in: run int
-- The places of a run's tenant, one row without a place where it has none, and the limit.
SELECT q.tenant, p.n, p.run_id, f.parallel_runs FROM run q JOIN tenant t ON t.name = q.tenant JOIN tariff f ON f.name = t.tariff
  LEFT JOIN run_place p ON p.tenant = q.tenant
WHERE q.id = :run

-- name: place_take
-- in: tenant text, n int, run int
INSERT INTO run_place (tenant, n, run_id) SELECT :tenant, :n, :run FROM run q WHERE q.id = :run AND q.state IN ('preparing', 'crawling', 'finishing')

-- name: place_free
-- in: run int
-- Frees the place of a run that is not active any more.
DELETE FROM run_place WHERE run_id = :run AND EXISTS (SELECT 1 FROM run q WHERE q.id = :run AND q.state IN ('queued', 'paused', 'done', 'cancelled', 'failed'))

-- name: seats_of_run
-- in: run int
SELECT s.run_id, s.n, s.owner FROM seat s WHERE s.run_id = :run ORDER BY s.n

-- name: unfinished
-- in: n int
-- The columns of a run, and what decides whether it is served.
SELECT q.id, q.tenant, q.site, q.spec, q.home, q.state, q.resume_state, q.reason, q.wait_until, q.previous_id, q.created, q.started, q.finished,
  q.worked_us, q.concurrency, q.served, q.inlinked,
  (SELECT COUNT(*) FROM seat s WHERE s.run_id = q.id), (SELECT COUNT(*) FROM run_place p WHERE p.tenant = q.tenant),
  CASE WHEN t.suspended = 0 AND t.deleting = 0 THEN 0 ELSE 1 END, f.name, f.parallel_runs, f.workers, f.run_pages, f.stored_pages
FROM run q JOIN tenant t ON t.name = q.tenant JOIN tariff f ON f.name = t.tariff
WHERE q.state IN ('queued', 'preparing', 'crawling', 'finishing', 'paused') AND q.deleting = 0 ORDER BY q.id LIMIT :n

-- name: owner_loads
SELECT c.owner, COUNT(*), 0 FROM claim c GROUP BY c.owner UNION ALL SELECT s.owner, 0, COUNT(*) FROM seat s GROUP BY s.owner

-- name: url_owner
-- in: run int, id int
SELECT c.owner FROM claim c WHERE c.run_id = :run AND c.id = :id

-- name: url_due
-- in: run int, id int, delayed int
SELECT f.pos FROM url u JOIN frontier f ON f.run_id = u.run_id AND f.host_id = u.host_id AND f.pos >= :delayed AND f.id = u.id
WHERE u.run_id = :run AND u.id = :id

-- name: url_ahead
-- in: run int, id int, again int
-- Queued URLs of a URL's host that leave before it, from both queued ranges.
SELECT (SELECT COUNT(*) FROM frontier f WHERE f.run_id = u.run_id AND f.host_id = u.host_id AND f.pos <= u.priority * 65536 + u.depth
    AND (f.pos < u.priority * 65536 + u.depth OR f.id < u.id))
  + (SELECT COUNT(*) FROM frontier f WHERE f.run_id = u.run_id AND f.host_id = u.host_id AND f.pos >= :again AND f.pos <= u.priority * 65536 + u.depth + :again
    AND (f.pos < u.priority * 65536 + u.depth + :again OR f.id < u.id))
FROM url u WHERE u.run_id = :run AND u.id = :id
