-- +goose Up
-- Positions, weights and states are explained in the package comment of sqlstore.

CREATE TABLE run (
  id INTEGER NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  site TEXT NOT NULL,
  spec BLOB,
  home TEXT NOT NULL,
  state TEXT NOT NULL,
  resume_state TEXT NOT NULL,
  reason TEXT NOT NULL,
  wait_until BIGINT NOT NULL,
  previous_id BIGINT NOT NULL,
  created BIGINT NOT NULL,
  started BIGINT NOT NULL,
  finished BIGINT NOT NULL,
  worked_us BIGINT NOT NULL,
  concurrency BIGINT NOT NULL,
  served BIGINT NOT NULL,
  next_url BIGINT NOT NULL,
  allotted BIGINT,
  inlinked SMALLINT NOT NULL,
  deleting SMALLINT NOT NULL
);
CREATE INDEX run_site ON run (tenant, site, id);
CREATE INDEX run_state ON run (state, id);

CREATE TABLE sequence (
  name TEXT NOT NULL PRIMARY KEY,
  last BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO sequence (name, last) VALUES ('run', 0);

CREATE TABLE host (
  id INTEGER NOT NULL PRIMARY KEY,
  name TEXT NOT NULL
);
CREATE UNIQUE INDEX host_name ON host (name);

-- The identity of every URL of every run: insert only. An id holds the run's in its upper bits, so rows of a run stand together.
CREATE TABLE url (
  id INTEGER NOT NULL PRIMARY KEY,
  run_id BIGINT NOT NULL,
  ukey BLOB NOT NULL,
  host_id BIGINT NOT NULL,
  priority INTEGER NOT NULL,
  depth INTEGER NOT NULL,
  via BIGINT NOT NULL,
  lastmod BIGINT NOT NULL,
  discovered BIGINT NOT NULL,
  url TEXT NOT NULL
);
CREATE UNIQUE INDEX url_key ON url (run_id, ukey);

-- Queued and delayed URLs only, in the order they leave.
CREATE TABLE frontier (
  run_id BIGINT NOT NULL,
  host_id BIGINT NOT NULL,
  pos BIGINT NOT NULL,
  id BIGINT NOT NULL,
  weight BIGINT NOT NULL,
  via BIGINT NOT NULL,
  attempts INTEGER NOT NULL,
  token BIGINT NOT NULL,
  reason TEXT NOT NULL,
  url TEXT NOT NULL,
  PRIMARY KEY (run_id, host_id, pos, id)
) WITHOUT ROWID;

-- Claimed URLs only: what is in flight or about to be.
CREATE TABLE claim (
  run_id BIGINT NOT NULL,
  id BIGINT NOT NULL,
  token BIGINT NOT NULL,
  owner TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  PRIMARY KEY (run_id, id)
) WITHOUT ROWID;

-- Results: insert only.
CREATE TABLE page (
  id INTEGER NOT NULL PRIMARY KEY,
  run_id BIGINT NOT NULL,
  token BIGINT NOT NULL,
  fetched BIGINT NOT NULL,
  state SMALLINT NOT NULL,
  status INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  outlinks INTEGER NOT NULL,
  bytes BIGINT NOT NULL,
  wire_bytes BIGINT NOT NULL,
  ttfb_us BIGINT NOT NULL,
  total_us BIGINT NOT NULL,
  reason TEXT NOT NULL,
  content_type TEXT NOT NULL,
  title TEXT NOT NULL,
  redirect_to TEXT NOT NULL,
  facts BLOB
);

CREATE TABLE page_link (
  id INTEGER NOT NULL PRIMARY KEY,
  run_id BIGINT NOT NULL,
  links BLOB NOT NULL
);

CREATE TABLE inlink (
  id BIGINT NOT NULL,
  run_id BIGINT NOT NULL,
  n BIGINT NOT NULL,
  source_id BIGINT NOT NULL,
  PRIMARY KEY (run_id, id)
) WITHOUT ROWID;

CREATE TABLE run_step (
  run_id BIGINT NOT NULL,
  name TEXT NOT NULL,
  progress BLOB,
  done SMALLINT NOT NULL,
  updated BIGINT NOT NULL,
  PRIMARY KEY (run_id, name)
) WITHOUT ROWID;

CREATE TABLE tally (
  run_id BIGINT NOT NULL,
  shard SMALLINT NOT NULL,
  name TEXT NOT NULL,
  n BIGINT NOT NULL,
  PRIMARY KEY (run_id, shard, name)
) WITHOUT ROWID;

CREATE TABLE seat (
  run_id BIGINT NOT NULL,
  n BIGINT NOT NULL,
  owner TEXT NOT NULL,
  PRIMARY KEY (run_id, n)
) WITHOUT ROWID;

CREATE TABLE fence (
  name TEXT NOT NULL PRIMARY KEY,
  epoch BIGINT NOT NULL,
  number BIGINT NOT NULL
) WITHOUT ROWID;
