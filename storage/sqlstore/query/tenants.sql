-- name: tariff_put
-- in: name text, parallel_runs int, workers int, run_pages int, stored_pages int
INSERT INTO tariff (name, parallel_runs, workers, run_pages, stored_pages) SELECT :name, :parallel_runs, :workers, :run_pages, :stored_pages WHERE 1 = 1
ON CONFLICT (name) DO UPDATE SET parallel_runs = excluded.parallel_runs, workers = excluded.workers, run_pages = excluded.run_pages,
  stored_pages = excluded.stored_pages

-- name: tariff_list
SELECT f.name, f.parallel_runs, f.workers, f.run_pages, f.stored_pages FROM tariff f ORDER BY f.name

-- name: tariff_get
-- in: name text
SELECT f.name FROM tariff f WHERE f.name = :name

-- name: tenant_put
-- in: name text, tariff text, suspended int
-- A tenant being deleted is not changed, which meets no row on PostgreSQL and SQLite; MySQL's override writes what was there.
INSERT INTO tenant (name, tariff, suspended, deleting, created) SELECT :name, :tariff, :suspended, 0, :now WHERE 1 = 1
ON CONFLICT (name) DO UPDATE SET tariff = excluded.tariff, suspended = excluded.suspended WHERE tenant.deleting = 0

-- name: tenant_get
-- in: name text
SELECT t.name, t.tariff, t.suspended, t.deleting, t.created, f.parallel_runs, f.workers, f.run_pages, f.stored_pages
FROM tenant t JOIN tariff f ON f.name = t.tariff WHERE t.name = :name

-- name: tenant_list
SELECT t.name, t.tariff, t.suspended, t.deleting, t.created FROM tenant t ORDER BY t.name

-- name: tenant_hold
-- in: name text
-- Keeps a tenant from being deleted, and its places from being given to others, until the transaction ends.
UPDATE tenant SET created = created WHERE name = :name AND deleting = 0

-- name: tenant_mark
-- in: name text
UPDATE tenant SET deleting = 1 WHERE name = :name

-- name: tenant_unschedule
-- in: name text
DELETE FROM schedule WHERE tenant = :name

-- name: tenant_unfinished
-- in: name text, n int
SELECT q.id FROM run q WHERE q.tenant = :name AND q.state IN ('queued', 'preparing', 'crawling', 'finishing', 'paused') AND q.deleting = 0
ORDER BY q.site, q.id LIMIT :n

-- name: tenant_run
-- in: name text
-- A run of the tenant, being deleted or not.
SELECT q.id FROM run q WHERE q.tenant = :name ORDER BY q.site, q.id LIMIT 1

-- name: tenant_drop
-- in: name text
DELETE FROM tenant WHERE name = :name AND deleting = 1 AND NOT EXISTS (SELECT 1 FROM run q WHERE q.tenant = :name)

-- name: stored_settled
-- in: name text
SELECT SUM(q.stored) FROM run q WHERE q.tenant = :name AND q.stored IS NOT NULL AND q.deleting = 0

-- name: stored_unsettled
-- in: name text
SELECT SUM(y.n) FROM run q JOIN tally y ON y.run_id = q.id AND y.name IN ('fetched', 'failed')
WHERE q.tenant = :name AND q.stored IS NULL AND q.deleting = 0

-- name: stored_due
-- in: name text, over_for int
-- Runs that have been over for so long that no result of theirs can come any more.
SELECT q.id FROM run q WHERE q.tenant = :name AND q.stored IS NULL AND q.state IN ('done', 'cancelled', 'failed') AND q.finished <= :now - :over_for
  AND q.deleting = 0 AND NOT EXISTS (SELECT 1 FROM claim c WHERE c.run_id = q.id)
ORDER BY q.site, q.id LIMIT 100

-- name: stored_settle
-- rows: run int
UPDATE run SET stored = (SELECT COALESCE(SUM(y.n), 0) FROM tally y WHERE y.run_id = :run AND y.name IN ('fetched', 'failed'))
WHERE id = :run AND stored IS NULL AND state IN ('done', 'cancelled', 'failed')
