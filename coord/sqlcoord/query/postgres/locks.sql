-- Row locks. FOR NO KEY UPDATE and FOR SHARE exclude each other, and grants only share.

-- name: authority_lock
SELECT a.epoch, a.mode, a.target, a.redis_run_id, a.redis_replid, a.redis_stamp, a.db_ident, a.hold_until, a.changed_at, a.reason, a.falls, a.fell_at, a.pin
FROM coord_authority a WHERE a.id = 1 FOR NO KEY UPDATE

-- name: session_lock
SELECT s.beat_seq, s.acked_epoch, s.state FROM coord_session s WHERE s.node_id = :node AND s.incarnation = :inc FOR NO KEY UPDATE

-- name: lease_lock
SELECT l.node_id, l.incarnation, l.token, l.fence_epoch, l.fence_number, l.until_at, l.freed FROM coord_lease l WHERE l.name = :name FOR NO KEY UPDATE

-- name: gate_lock
SELECT g.gate_key, g.gen, g.not_before, g.reason, g.changed_at FROM coord_gate g WHERE g.gate_key = :gate_key FOR NO KEY UPDATE

-- name: rate_lock
SELECT r.epoch, r.tat FROM coord_rate r WHERE r.rate_key = :rate_key FOR NO KEY UPDATE

-- name: session_share
SELECT s.beat_seq, s.acked_epoch, s.state FROM coord_session s WHERE s.node_id = :node AND s.incarnation = :inc FOR SHARE

-- name: ident
-- The timeline is that of the WAL being written: the control file's is behind after a promotion. life_set has nothing to do.
SELECT s.system_identifier || '/' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) || '/' || current_database(),
  (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text,
  CASE WHEN current_setting('synchronous_commit') = 'off' OR current_setting('fsync') = 'off' THEN 1 ELSE 0 END
FROM pg_control_system() s

-- name: life_set
SELECT :life::text WHERE false
