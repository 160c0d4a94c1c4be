-- Columns of a schedule, in the order scanSchedule reads them: id, tenant, name, site, spec, every_us, cron, zone, next_due, last_run, created.

-- name: schedule_number
UPDATE sequence SET last = last + 1 WHERE name = 'schedule'

-- name: schedule_numbered
SELECT last FROM sequence WHERE name = 'schedule'

-- name: schedule_insert
-- in: id int, tenant text, name text, site text, spec bytes, every_us int, cron text, zone text, next_due int
INSERT INTO schedule (id, tenant, name, site, spec, every_us, cron, zone, next_due, last_run, created)
SELECT :id, :tenant, :name, :site, :spec, :every_us, :cron, :zone, :next_due, 0, :now

-- name: schedule_get
-- in: id int
SELECT h.id, h.tenant, h.name, h.site, h.spec, h.every_us, h.cron, h.zone, h.next_due, h.last_run, h.created FROM schedule h WHERE h.id = :id

-- name: schedule_list
-- in: tenant text
SELECT h.id, h.tenant, h.name, h.site, h.spec, h.every_us, h.cron, h.zone, h.next_due, h.last_run, h.created FROM schedule h
WHERE :tenant = '' OR h.tenant = :tenant ORDER BY h.id

-- name: schedule_drop
-- in: id int
DELETE FROM schedule WHERE id = :id

-- name: schedule_due_list
-- in: n int
SELECT h.id, h.tenant, h.name, h.site, h.spec, h.every_us, h.cron, h.zone, h.next_due, h.last_run, h.created FROM schedule h
WHERE h.next_due <= :now ORDER BY h.next_due, h.id LIMIT :n

-- name: schedule_move
-- in: id int, next_due int
-- Locks a schedule that is due, and moves it on.
UPDATE schedule SET next_due = :next_due WHERE id = :id AND next_due <= :now

-- name: schedule_started
-- in: id int, run int
UPDATE schedule SET last_run = :run WHERE id = :id
