-- +goose Up
-- The authority of coordination: see the package comment of coord. Times are microseconds of this server's clock.

-- The one row that decides who grants. Epoch 0 is before the first session.
CREATE TABLE coord_authority (
  id BIGINT NOT NULL PRIMARY KEY,
  epoch BIGINT NOT NULL,
  mode VARCHAR(40) NOT NULL,
  target VARCHAR(40) NOT NULL,
  redis_run_id VARCHAR(200) NOT NULL,
  redis_replid VARCHAR(200) NOT NULL,
  redis_stamp BIGINT NOT NULL,
  db_ident VARCHAR(1000) NOT NULL,
  hold_until BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  reason VARCHAR(1000) NOT NULL,
  falls BIGINT NOT NULL,
  fell_at BIGINT NOT NULL,
  pin VARCHAR(40) NOT NULL
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT INTO coord_authority (id, epoch, mode, target, redis_run_id, redis_replid, redis_stamp, db_ident, hold_until, changed_at, reason, falls, fell_at, pin)
VALUES (1, 0, '', '', '', '', 0, '', 0, 0, '', 0, 0, '');

CREATE TABLE coord_session (
  node_id VARCHAR(40) NOT NULL,
  incarnation BIGINT NOT NULL,
  role VARCHAR(40) NOT NULL,
  machine VARCHAR(200) NOT NULL,
  lock_file VARCHAR(200) NOT NULL,
  beat_seq BIGINT NOT NULL,
  beat_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  acked_epoch BIGINT NOT NULL,
  state VARCHAR(40) NOT NULL,
  redis VARCHAR(1000) NOT NULL,
  facts VARBINARY(6000) NOT NULL,
  PRIMARY KEY (node_id, incarnation)
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The cap is this primary key: a slot is a number from 1 to the cap.
CREATE TABLE coord_slot (
  slot_key VARCHAR(280) NOT NULL,
  n BIGINT NOT NULL,
  node_id VARCHAR(40) NOT NULL,
  incarnation BIGINT NOT NULL,
  token BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  cap BIGINT NOT NULL,
  PRIMARY KEY (slot_key, n)
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE UNIQUE INDEX coord_slot_owner ON coord_slot (node_id, incarnation, token);

CREATE TABLE coord_want (
  slot_key VARCHAR(280) NOT NULL,
  node_id VARCHAR(40) NOT NULL,
  incarnation BIGINT NOT NULL,
  cap BIGINT NOT NULL,
  since_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  PRIMARY KEY (slot_key, node_id, incarnation)
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX coord_want_owner ON coord_want (node_id, incarnation);

-- Rows stay when a lease ends, so that its fence never repeats.
CREATE TABLE coord_lease (
  name VARCHAR(280) NOT NULL PRIMARY KEY,
  node_id VARCHAR(40) NOT NULL,
  incarnation BIGINT NOT NULL,
  token BIGINT NOT NULL,
  fence_epoch BIGINT NOT NULL,
  fence_number BIGINT NOT NULL,
  until_at BIGINT NOT NULL,
  freed BIGINT NOT NULL
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE coord_gate (
  gate_key VARCHAR(280) NOT NULL PRIMARY KEY,
  gen BIGINT NOT NULL,
  not_before BIGINT NOT NULL,
  reason VARCHAR(1000) NOT NULL,
  changed_at BIGINT NOT NULL
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX coord_gate_changed ON coord_gate (changed_at);
CREATE INDEX coord_gate_closed ON coord_gate (not_before);

CREATE TABLE coord_rate (
  rate_key VARCHAR(280) NOT NULL PRIMARY KEY,
  epoch BIGINT NOT NULL,
  tat BIGINT NOT NULL
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The life of this server: a table in memory is empty after a restart.
CREATE TABLE coord_life (
  id BIGINT NOT NULL PRIMARY KEY,
  life VARCHAR(40) NOT NULL
) ENGINE=MEMORY CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
