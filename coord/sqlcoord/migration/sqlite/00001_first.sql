-- +goose Up
-- The authority of coordination: see the package comment of coord. Times are microseconds of this server's clock.

-- The one row that decides who grants. Epoch 0 is before the first session.
CREATE TABLE coord_authority (
  id INTEGER NOT NULL PRIMARY KEY,
  epoch BIGINT NOT NULL,
  mode TEXT NOT NULL,
  target TEXT NOT NULL,
  redis_run_id TEXT NOT NULL,
  redis_replid TEXT NOT NULL,
  redis_stamp BIGINT NOT NULL,
  db_ident TEXT NOT NULL,
  hold_until BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  reason TEXT NOT NULL,
  falls INTEGER NOT NULL,
  fell_at BIGINT NOT NULL,
  pin TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO coord_authority (id, epoch, mode, target, redis_run_id, redis_replid, redis_stamp, db_ident, hold_until, changed_at, reason, falls, fell_at, pin)
VALUES (1, 0, '', '', '', '', 0, '', 0, 0, '', 0, 0, '');

CREATE TABLE coord_session (
  node_id TEXT NOT NULL,
  incarnation BIGINT NOT NULL,
  role TEXT NOT NULL,
  machine TEXT NOT NULL,
  lock_file TEXT NOT NULL,
  beat_seq BIGINT NOT NULL,
  beat_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  acked_epoch BIGINT NOT NULL,
  state TEXT NOT NULL,
  redis TEXT NOT NULL,
  facts BLOB NOT NULL,
  PRIMARY KEY (node_id, incarnation)
) WITHOUT ROWID;

-- The cap is this primary key: a slot is a number from 1 to the cap.
CREATE TABLE coord_slot (
  slot_key TEXT NOT NULL,
  n INTEGER NOT NULL,
  node_id TEXT NOT NULL,
  incarnation BIGINT NOT NULL,
  token BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  cap INTEGER NOT NULL,
  PRIMARY KEY (slot_key, n)
) WITHOUT ROWID;
CREATE UNIQUE INDEX coord_slot_owner ON coord_slot (node_id, incarnation, token);

CREATE TABLE coord_want (
  slot_key TEXT NOT NULL,
  node_id TEXT NOT NULL,
  incarnation BIGINT NOT NULL,
  cap INTEGER NOT NULL,
  since_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (slot_key, node_id, incarnation)
) WITHOUT ROWID;
CREATE INDEX coord_want_owner ON coord_want (node_id, incarnation);

-- Rows stay when a lease ends, so that its fence never repeats.
CREATE TABLE coord_lease (
  name TEXT NOT NULL PRIMARY KEY,
  node_id TEXT NOT NULL,
  incarnation BIGINT NOT NULL,
  token BIGINT NOT NULL,
  fence_epoch BIGINT NOT NULL,
  fence_number BIGINT NOT NULL,
  until_at BIGINT NOT NULL,
  freed INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE coord_gate (
  gate_key TEXT NOT NULL PRIMARY KEY,
  gen BIGINT NOT NULL,
  not_before BIGINT NOT NULL,
  reason TEXT NOT NULL,
  changed_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX coord_gate_changed ON coord_gate (changed_at);
CREATE INDEX coord_gate_closed ON coord_gate (not_before);

CREATE TABLE coord_rate (
  rate_key TEXT NOT NULL PRIMARY KEY,
  epoch BIGINT NOT NULL,
  tat BIGINT NOT NULL
) WITHOUT ROWID;

-- The file's own name: a copy put in its place has another.
CREATE TABLE coord_life (
  id INTEGER NOT NULL PRIMARY KEY,
  life TEXT NOT NULL
) WITHOUT ROWID;
