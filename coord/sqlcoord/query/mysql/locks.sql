-- Row locks, and INSERT IGNORE for ON CONFLICT.

-- name: authority_lock
SELECT a.epoch, a.mode, a.target, a.redis_run_id, a.redis_replid, a.redis_stamp, a.db_ident, a.hold_until, a.changed_at, a.reason, a.falls, a.fell_at, a.pin
FROM coord_authority a WHERE a.id = 1 FOR UPDATE

-- name: session_lock
SELECT s.beat_seq, s.acked_epoch, s.state FROM coord_session s WHERE s.node_id = :node AND s.incarnation = :inc FOR UPDATE

-- name: lease_lock
SELECT l.node_id, l.incarnation, l.token, l.fence_epoch, l.fence_number, l.until_at, l.freed FROM coord_lease l WHERE l.name = :name FOR UPDATE

-- name: gate_lock
SELECT g.gate_key, g.gen, g.not_before, g.reason, g.changed_at FROM coord_gate g WHERE g.gate_key = :gate_key FOR UPDATE

-- name: rate_lock
SELECT r.epoch, r.tat FROM coord_rate r WHERE r.rate_key = :rate_key FOR UPDATE

-- name: session_share
SELECT s.beat_seq, s.acked_epoch, s.state FROM coord_session s WHERE s.node_id = :node AND s.incarnation = :inc LOCK IN SHARE MODE

-- name: life_set
INSERT IGNORE INTO coord_life (id, life) VALUES (1, :life)

-- name: lease_make
INSERT IGNORE INTO coord_lease (name, node_id, incarnation, token, fence_epoch, fence_number, until_at, freed)
VALUES (:name, '', 0, 0, 0, 0, 0, 1)

-- name: gate_make
INSERT IGNORE INTO coord_gate (gate_key, gen, not_before, reason, changed_at) VALUES (:gate_key, 1, 0, '', 0)

-- name: ident
-- The life is that of a table in memory, made anew after a restart.
SELECT CONCAT(@@server_id, '/', @@hostname, '/', @@datadir, '/', DATABASE()), COALESCE((SELECT l.life FROM coord_life l WHERE l.id = 1), ''),
  CASE WHEN @@innodb_flush_log_at_trx_commit = 1 THEN 0 ELSE 1 END
