-- name: now
SELECT :now

-- name: authority
SELECT a.epoch, a.mode, a.target, a.redis_run_id, a.redis_replid, a.redis_stamp, a.db_ident, a.hold_until, a.changed_at, a.reason, a.falls, a.fell_at, a.pin
FROM coord_authority a WHERE a.id = 1

-- name: authority_lock
-- Overrides lock the row: registrations and switches wait for each other.
SELECT a.epoch, a.mode, a.target, a.redis_run_id, a.redis_replid, a.redis_stamp, a.db_ident, a.hold_until, a.changed_at, a.reason, a.falls, a.fell_at, a.pin
FROM coord_authority a WHERE a.id = 1

-- name: authority_set
-- in: epoch int, mode text, target text, run text, repl text, stamp int, ident text, hold int, changed int, reason text, falls int, fell int, pin text
UPDATE coord_authority SET epoch = :epoch, mode = :mode, target = :target, redis_run_id = :run, redis_replid = :repl, redis_stamp = :stamp,
  db_ident = :ident, hold_until = :hold, changed_at = :changed, reason = :reason, falls = :falls, fell_at = :fell, pin = :pin WHERE id = 1

-- name: ident
-- Who answers: system, start, whether a crash may lose commits. SQLite: the file's own name; the inode comes from outside.
SELECT COALESCE((SELECT l.life FROM coord_life l WHERE l.id = 1), ''), '', 0

-- name: life_set
-- in: life text
INSERT INTO coord_life (id, life) VALUES (1, :life) ON CONFLICT (id) DO NOTHING

-- name: session_lock
-- in: node text, inc int
-- Overrides lock the row against grants and other writers of it.
SELECT s.beat_seq, s.acked_epoch, s.state FROM coord_session s WHERE s.node_id = :node AND s.incarnation = :inc

-- name: session_share
-- in: node text, inc int
-- Overrides lock the row against beats, burials and acks, not against other grants.
SELECT s.beat_seq, s.acked_epoch, s.state FROM coord_session s WHERE s.node_id = :node AND s.incarnation = :inc

-- name: session_of_node
-- in: node text
SELECT s.incarnation, s.role, s.state FROM coord_session s WHERE s.node_id = :node

-- name: session_add
-- in: node text, inc int, role text, machine text, lock text, acked int, redis text, facts bytes
INSERT INTO coord_session (node_id, incarnation, role, machine, lock_file, beat_seq, beat_at, ended_at, acked_epoch, state, redis, facts)
VALUES (:node, :inc, :role, :machine, :lock, 0, :now, 0, :acked, 'live', :redis, :facts)

-- name: session_prune
-- in: before int
DELETE FROM coord_session WHERE state <> 'live' AND ended_at < :before

-- name: session_beat
-- in: node text, inc int, seq int, redis text, facts bytes
UPDATE coord_session SET beat_seq = :seq, beat_at = :now, redis = :redis, facts = :facts
WHERE node_id = :node AND incarnation = :inc AND state = 'live' AND beat_seq < :seq

-- name: session_ack
-- in: node text, inc int, epoch int
UPDATE coord_session SET acked_epoch = :epoch WHERE node_id = :node AND incarnation = :inc

-- name: session_end
-- in: node text, inc int, state text
UPDATE coord_session SET state = :state, ended_at = :now WHERE node_id = :node AND incarnation = :inc AND state = 'live'

-- name: session_states
-- Ended ones for ten minutes.
SELECT s.node_id, s.incarnation, s.state, s.beat_seq, s.acked_epoch, s.redis FROM coord_session s
WHERE s.state = 'live' OR s.ended_at > :now - 600000000 ORDER BY s.node_id, s.incarnation

-- name: session_list
SELECT s.node_id, s.incarnation, s.state, s.beat_seq, s.acked_epoch, s.redis, s.role, s.machine, s.lock_file, s.beat_at, s.facts,
  (SELECT COUNT(*) FROM coord_slot x WHERE x.node_id = s.node_id AND x.incarnation = s.incarnation)
FROM coord_session s ORDER BY s.node_id, s.incarnation

-- name: session_acks
-- The barrier: how many are live, the lowest they have acked, and the highest anybody has.
SELECT COALESCE(SUM(CASE WHEN s.state = 'live' THEN 1 ELSE 0 END), 0), COALESCE(MIN(CASE WHEN s.state = 'live' THEN s.acked_epoch END), 0),
  COALESCE(MAX(s.acked_epoch), 0) FROM coord_session s

-- name: slots_of_key
-- rows: slot_key text
SELECT s.slot_key, s.n, s.node_id, s.incarnation, s.token, s.epoch, s.cap FROM coord_slot s WHERE s.slot_key = :slot_key

-- name: slots_all
SELECT s.slot_key, s.n, s.node_id, s.incarnation, s.token, s.epoch, s.cap FROM coord_slot s ORDER BY s.slot_key, s.n

-- name: slots_beside
-- in: node text, inc int
-- All slots of the keys this session has slots of.
SELECT s.slot_key, s.n, s.node_id, s.incarnation, s.token, s.epoch, s.cap FROM coord_slot s
WHERE s.slot_key IN (SELECT m.slot_key FROM coord_slot m WHERE m.node_id = :node AND m.incarnation = :inc) ORDER BY s.slot_key, s.n

-- name: slot_add
-- rows: slot_key text, n int, node text, inc int, token int, epoch int, cap int
INSERT INTO coord_slot (slot_key, n, node_id, incarnation, token, epoch, cap) :values

-- name: slot_delete
-- in: node text, inc int
-- rows: token int
DELETE FROM coord_slot WHERE node_id = :node AND incarnation = :inc AND token = :token

-- name: slots_delete_of
-- in: node text, inc int
DELETE FROM coord_slot WHERE node_id = :node AND incarnation = :inc

-- name: slots_delete_all
DELETE FROM coord_slot

-- name: wants_of_key
-- rows: slot_key text
SELECT w.slot_key, w.node_id, w.incarnation, w.cap, w.since_at, w.seen_at FROM coord_want w WHERE w.slot_key = :slot_key

-- name: wants_beside
-- in: node text, inc int
SELECT w.slot_key, w.node_id, w.incarnation, w.cap, w.since_at, w.seen_at FROM coord_want w
WHERE w.slot_key IN (SELECT m.slot_key FROM coord_slot m WHERE m.node_id = :node AND m.incarnation = :inc)

-- name: want_delete
-- in: node text, inc int
-- rows: slot_key text
DELETE FROM coord_want WHERE slot_key = :slot_key AND node_id = :node AND incarnation = :inc

-- name: want_add
-- in: node text, inc int
-- rows: slot_key text, cap int, since_at int, seen_at int
INSERT INTO coord_want (slot_key, node_id, incarnation, cap, since_at, seen_at) VALUES (:slot_key, :node, :inc, :cap, :since_at, :seen_at)

-- name: wants_delete_of
-- in: node text, inc int
DELETE FROM coord_want WHERE node_id = :node AND incarnation = :inc

-- name: wants_prune
-- in: before int
DELETE FROM coord_want WHERE seen_at < :before

-- name: lease_make
-- in: name text
INSERT INTO coord_lease (name, node_id, incarnation, token, fence_epoch, fence_number, until_at, freed)
VALUES (:name, '', 0, 0, 0, 0, 0, 1) ON CONFLICT (name) DO NOTHING

-- name: lease_lock
-- in: name text
SELECT l.node_id, l.incarnation, l.token, l.fence_epoch, l.fence_number, l.until_at, l.freed FROM coord_lease l WHERE l.name = :name

-- name: lease_read
-- in: name text
SELECT l.node_id, l.incarnation, l.token, l.fence_epoch, l.fence_number, l.until_at, l.freed FROM coord_lease l WHERE l.name = :name

-- name: lease_holder
-- in: name text
SELECT s.state FROM coord_lease l JOIN coord_session s ON s.node_id = l.node_id AND s.incarnation = l.incarnation WHERE l.name = :name

-- name: lease_set
-- in: name text, node text, inc int, token int, epoch int, number int, until int, freed int
UPDATE coord_lease SET node_id = :node, incarnation = :inc, token = :token, fence_epoch = :epoch, fence_number = :number, until_at = :until,
  freed = :freed WHERE name = :name

-- name: lease_drop
-- in: name text, node text, inc int, token int
UPDATE coord_lease SET freed = 1 WHERE name = :name AND node_id = :node AND incarnation = :inc AND token = :token

-- name: leases_free_of
-- in: node text, inc int
UPDATE coord_lease SET freed = 1 WHERE node_id = :node AND incarnation = :inc

-- name: gate_make
-- rows: gate_key text
INSERT INTO coord_gate (gate_key, gen, not_before, reason, changed_at) VALUES (:gate_key, 1, 0, '', 0) ON CONFLICT (gate_key) DO NOTHING

-- name: gate_lock
-- rows: gate_key text
SELECT g.gate_key, g.gen, g.not_before, g.reason, g.changed_at FROM coord_gate g WHERE g.gate_key = :gate_key

-- name: gate_set
-- rows: gate_key text, gen int, at int, reason text, changed int
UPDATE coord_gate SET gen = :gen, not_before = :at, reason = :reason, changed_at = :changed WHERE gate_key = :gate_key

-- name: gates_changed
-- in: since int
SELECT g.gate_key, g.gen, g.not_before, g.reason, g.changed_at FROM coord_gate g WHERE g.changed_at >= :since ORDER BY g.gate_key

-- name: gates_closed
SELECT g.gate_key, g.gen, g.not_before, g.reason, g.changed_at FROM coord_gate g WHERE g.not_before > :now ORDER BY g.gate_key

-- name: rate_lock
-- in: rate_key text
SELECT r.epoch, r.tat FROM coord_rate r WHERE r.rate_key = :rate_key

-- name: rate_add
-- in: rate_key text, epoch int, tat int
INSERT INTO coord_rate (rate_key, epoch, tat) VALUES (:rate_key, :epoch, :tat)

-- name: rate_set
-- in: rate_key text, epoch int, tat int
UPDATE coord_rate SET epoch = :epoch, tat = :tat WHERE rate_key = :rate_key

-- name: rates_prune
-- in: before int
-- A bucket that has been full for a day is as good as a missing one, and a missing one is empty.
DELETE FROM coord_rate WHERE tat < :before

-- name: gates_prune
-- in: before int
DELETE FROM coord_gate WHERE not_before < :before AND changed_at < :before
