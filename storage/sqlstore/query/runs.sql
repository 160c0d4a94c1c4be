-- name: run_number
UPDATE sequence SET last = last + 1 WHERE name = 'run'

-- name: run_numbered
SELECT last FROM sequence WHERE name = 'run'

-- name: run_insert
-- in: id int, tenant text, site text, spec bytes, home text, concurrency int
INSERT INTO run (id, tenant, site, spec, home, state, resume_state, reason, wait_until, previous_id, created, started, finished, worked_us,
  concurrency, served, next_url, allotted, inlinked, deleting)
SELECT :id, :tenant, :site, :spec, :home, 'queued', '', '', 0,
  COALESCE((SELECT MAX(p.id) FROM run p WHERE p.tenant = :tenant AND p.site = :site AND p.state = 'done' AND p.deleting = 0), 0),
  :now, 0, 0, 0, :concurrency, :now, 1, NULL, 0, 0

-- name: run_get
-- in: id int
SELECT q.id, q.tenant, q.site, q.spec, q.home, q.state, q.resume_state, q.reason, q.wait_until, q.previous_id, q.created, q.started, q.finished,
  q.worked_us, q.concurrency, q.served, q.inlinked
FROM run q WHERE q.id = :id AND q.deleting = 0

-- name: run_list
-- in: tenant text, site text, before int, n int, over_for int, s1 text, s2 text, s3 text, s4 text, s5 text, s6 text, s7 text, s8 text
SELECT q.id, q.tenant, q.site, q.spec, q.home, q.state, q.resume_state, q.reason, q.wait_until, q.previous_id, q.created, q.started, q.finished,
  q.worked_us, q.concurrency, q.served, q.inlinked
FROM run q
WHERE q.deleting = 0 AND q.id < :before AND (:tenant = '' OR q.tenant = :tenant) AND (:site = '' OR q.site = :site)
  AND q.state IN (:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8) AND (:over_for = 0 OR q.finished > 0 AND q.finished <= :now - :over_for)
ORDER BY q.id DESC LIMIT :n

-- name: run_move
-- in: id int, to text, active int, terminal int, reason text, wait_until int, s1 text, s2 text, s3 text, s4 text, s5 text, s6 text, s7 text, s8 text
-- resume_state, started and finished come before state: MySQL sees what it has assigned.
UPDATE run SET
  resume_state = CASE WHEN :to = 'paused' AND state <> 'paused' THEN state ELSE resume_state END,
  started = CASE WHEN started = 0 AND :active = 1 THEN :now ELSE started END,
  finished = CASE WHEN :terminal = 1 THEN :now ELSE finished END,
  stored = NULL,
  state = :to, reason = :reason, wait_until = :wait_until
WHERE id = :id AND deleting = 0 AND state IN (:s1, :s2, :s3, :s4, :s5, :s6, :s7, :s8)

-- name: run_update
-- in: id int, set_home int, home text, set_spec int, spec bytes, set_reason int, reason text, set_until int, wait_until int, worked int
-- A new definition may hold another page limit, so what is given out is counted again.
UPDATE run SET
  home = CASE WHEN :set_home = 1 THEN :home ELSE home END,
  spec = CASE WHEN :set_spec = 1 THEN :spec ELSE spec END,
  allotted = CASE WHEN :set_spec = 1 THEN NULL ELSE allotted END,
  reason = CASE WHEN :set_reason = 1 THEN :reason ELSE reason END,
  wait_until = CASE WHEN :set_until = 1 THEN :wait_until ELSE wait_until END,
  worked_us = worked_us + :worked
WHERE id = :id AND deleting = 0

-- name: seats_clear
-- in: run int
-- Frees the seats of a run that is over.
DELETE FROM seat WHERE run_id = :run AND EXISTS (SELECT 1 FROM run q WHERE q.id = :run AND q.state IN ('done', 'cancelled', 'failed'))

-- name: seats_of_owner
-- in: owner text
DELETE FROM seat WHERE owner = :owner

-- name: seat_leave
-- in: run int, n int, owner text
DELETE FROM seat WHERE run_id = :run AND n = :n AND owner = :owner

-- name: seat_list
SELECT s.run_id, s.n, s.owner FROM seat s ORDER BY s.run_id, s.n

-- name: seat_take
-- in: run int, n int, owner text
INSERT INTO seat (run_id, n, owner) VALUES (:run, :n, :owner)

-- name: run_serve
-- in: run int, state text
-- state is the one the choice was made on; a queued run begins, or goes on where it was. resume_state comes after state: MySQL sees
-- what it has assigned.
UPDATE run SET served = :now, started = CASE WHEN started = 0 THEN :now ELSE started END,
  state = CASE WHEN :state <> 'queued' THEN state WHEN resume_state IN ('preparing', 'crawling', 'finishing') THEN resume_state ELSE 'preparing' END,
  resume_state = CASE WHEN :state = 'queued' THEN '' ELSE resume_state END
WHERE id = :run AND deleting = 0 AND state = :state

-- name: fence_add
-- in: name text, epoch int, number int
INSERT INTO fence (name, epoch, number) VALUES (:name, :epoch, :number) ON CONFLICT (name) DO NOTHING

-- name: fence_pass
-- in: name text, epoch int, number int
-- Meets the row only where no newer holder has written.
UPDATE fence SET epoch = :epoch, number = :number WHERE name = :name AND (epoch < :epoch OR epoch = :epoch AND number <= :number)

-- name: step_get
-- in: run int, name text
SELECT s.progress, s.done, s.updated FROM run_step s WHERE s.run_id = :run AND s.name = :name

-- name: step_save
-- in: run int, name text, progress bytes, done int
INSERT INTO run_step (run_id, name, progress, done, updated) SELECT :run, :name, :progress, :done, :now WHERE 1 = 1
ON CONFLICT (run_id, name) DO UPDATE SET progress = excluded.progress, done = excluded.done, updated = excluded.updated

-- name: step_names
-- in: run int
SELECT s.name FROM run_step s WHERE s.run_id = :run

-- name: step_drop
-- in: run int
-- rows: name text
DELETE FROM run_step WHERE run_id = :run AND name = :name

-- name: delete_mark
-- in: run int
UPDATE run SET deleting = 1 WHERE id = :run AND (deleting = 1 OR state IN ('done', 'cancelled', 'failed', 'paused'))

-- name: delete_state
-- in: run int
SELECT state, deleting FROM run WHERE id = :run

-- name: delete_claims
-- in: run int
DELETE FROM claim WHERE run_id = :run

-- name: cut_page_link
-- in: run int, first int, n int
SELECT MAX(x.id), COUNT(*) FROM (SELECT p.id FROM page_link p WHERE p.run_id = :run AND p.id >= :first ORDER BY p.id LIMIT :n) x

-- name: delete_page_link
-- in: run int, first int, last int
DELETE FROM page_link WHERE run_id = :run AND id >= :first AND id <= :last

-- name: cut_page
-- in: run int, first int, n int
SELECT MAX(x.id), COUNT(*) FROM (SELECT p.id FROM page p WHERE p.run_id = :run AND p.id >= :first ORDER BY p.id LIMIT :n) x

-- name: delete_page
-- in: run int, first int, last int
DELETE FROM page WHERE run_id = :run AND id >= :first AND id <= :last

-- name: cut_inlink
-- in: run int, first int, n int
SELECT MAX(x.id), COUNT(*) FROM (SELECT p.id FROM inlink p WHERE p.run_id = :run AND p.id >= :first ORDER BY p.id LIMIT :n) x

-- name: delete_inlink
-- in: run int, first int, last int
DELETE FROM inlink WHERE run_id = :run AND id >= :first AND id <= :last

-- name: cut_url
-- in: run int, first int, n int
SELECT MAX(x.id), COUNT(*) FROM (SELECT p.id FROM url p WHERE p.run_id = :run AND p.id >= :first ORDER BY p.id LIMIT :n) x

-- name: delete_url
-- in: run int, first int, last int
DELETE FROM url WHERE run_id = :run AND id >= :first AND id <= :last

-- name: delete_rest_steps
-- in: run int
DELETE FROM run_step WHERE run_id = :run

-- name: delete_rest_tally
-- in: run int
DELETE FROM tally WHERE run_id = :run

-- name: delete_rest_seats
-- in: run int
DELETE FROM seat WHERE run_id = :run

-- name: delete_rest_places
-- in: run int
DELETE FROM run_place WHERE run_id = :run

-- name: run_wait
-- in: run int, resume text
-- Queues a run that found no place; it goes on in its state when there is one.
UPDATE run SET state = 'queued', resume_state = :resume WHERE id = :run

-- name: delete_run
-- in: run int
DELETE FROM run WHERE id = :run AND deleting = 1
