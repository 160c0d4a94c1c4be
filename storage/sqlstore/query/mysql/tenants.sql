-- INSERT without ON CONFLICT, as in mysql.sql.

-- name: tariff_put
INSERT INTO tariff (name, parallel_runs, workers, run_pages, stored_pages) VALUES (:name, :parallel_runs, :workers, :run_pages, :stored_pages)
ON DUPLICATE KEY UPDATE parallel_runs = VALUES(parallel_runs), workers = VALUES(workers), run_pages = VALUES(run_pages), stored_pages = VALUES(stored_pages)

-- name: tenant_put
INSERT INTO tenant (name, tariff, suspended, deleting, created) VALUES (:name, :tariff, :suspended, 0, :now)
ON DUPLICATE KEY UPDATE tariff = CASE WHEN deleting = 0 THEN VALUES(tariff) ELSE tariff END,
  suspended = CASE WHEN deleting = 0 THEN VALUES(suspended) ELSE suspended END

-- name: ban_put
INSERT INTO host_ban (host, reason, since) VALUES (:host, :reason, :now) ON DUPLICATE KEY UPDATE reason = VALUES(reason)
