-- +goose Up
-- Positions, weights and states are explained in the package comment of sqlstore.
-- Text is VARBINARY: compared byte for byte, trailing blanks included, whatever the server's collation is.

CREATE TABLE run (
  id BIGINT NOT NULL PRIMARY KEY,
  tenant VARBINARY(255) NOT NULL,
  site VARBINARY(255) NOT NULL,
  spec MEDIUMBLOB,
  home VARBINARY(64) NOT NULL,
  state VARBINARY(16) NOT NULL,
  resume_state VARBINARY(16) NOT NULL,
  reason BLOB NOT NULL,
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
) ENGINE = InnoDB;
CREATE INDEX run_site ON run (tenant, site, id);
CREATE INDEX run_state ON run (state, id);

CREATE TABLE sequence (
  name VARBINARY(32) NOT NULL PRIMARY KEY,
  last BIGINT NOT NULL
) ENGINE = InnoDB;
INSERT INTO sequence (name, last) VALUES ('run', 0);

CREATE TABLE host (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARBINARY(255) NOT NULL
) ENGINE = InnoDB;
CREATE UNIQUE INDEX host_name ON host (name);

-- The identity of every URL of every run: insert only.
CREATE TABLE url (
  id BIGINT NOT NULL,
  run_id BIGINT NOT NULL,
  ukey BINARY(16) NOT NULL,
  host_id BIGINT NOT NULL,
  priority INTEGER NOT NULL,
  depth INTEGER NOT NULL,
  via BIGINT NOT NULL,
  lastmod BIGINT NOT NULL,
  discovered BIGINT NOT NULL DEFAULT (CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)),
  url VARBINARY(2048) NOT NULL,
  PRIMARY KEY (run_id, id)
) ENGINE = InnoDB;
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
  reason VARBINARY(32) NOT NULL,
  url VARBINARY(2048) NOT NULL,
  PRIMARY KEY (run_id, host_id, pos, id)
) ENGINE = InnoDB;

-- Claimed URLs only: what is in flight or about to be.
CREATE TABLE claim (
  run_id BIGINT NOT NULL,
  id BIGINT NOT NULL,
  token BIGINT NOT NULL,
  owner VARBINARY(64) NOT NULL,
  attempts INTEGER NOT NULL,
  PRIMARY KEY (run_id, id)
) ENGINE = InnoDB;
CREATE INDEX claim_owner ON claim (owner, run_id, id);

-- Results: insert only.
CREATE TABLE page (
  id BIGINT NOT NULL,
  run_id BIGINT NOT NULL,
  token BIGINT NOT NULL,
  fetched BIGINT NOT NULL DEFAULT (CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)),
  state SMALLINT NOT NULL,
  status INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  outlinks INTEGER NOT NULL,
  bytes BIGINT NOT NULL,
  wire_bytes BIGINT NOT NULL,
  ttfb_us BIGINT NOT NULL,
  total_us BIGINT NOT NULL,
  reason VARBINARY(32) NOT NULL,
  content_type VARBINARY(128) NOT NULL,
  title VARBINARY(512) NOT NULL,
  redirect_to VARBINARY(2048) NOT NULL,
  facts MEDIUMBLOB,
  PRIMARY KEY (run_id, id)
) ENGINE = InnoDB;

CREATE TABLE page_link (
  id BIGINT NOT NULL,
  run_id BIGINT NOT NULL,
  links MEDIUMBLOB NOT NULL,
  PRIMARY KEY (run_id, id)
) ENGINE = InnoDB;

CREATE TABLE inlink (
  id BIGINT NOT NULL,
  run_id BIGINT NOT NULL,
  n BIGINT NOT NULL,
  source_id BIGINT NOT NULL,
  PRIMARY KEY (run_id, id)
) ENGINE = InnoDB;

CREATE TABLE run_step (
  run_id BIGINT NOT NULL,
  name VARBINARY(128) NOT NULL,
  progress MEDIUMBLOB,
  done SMALLINT NOT NULL,
  updated BIGINT NOT NULL,
  PRIMARY KEY (run_id, name)
) ENGINE = InnoDB;

CREATE TABLE tally (
  run_id BIGINT NOT NULL,
  shard SMALLINT NOT NULL,
  name VARBINARY(48) NOT NULL,
  n BIGINT NOT NULL,
  PRIMARY KEY (run_id, shard, name)
) ENGINE = InnoDB;

CREATE TABLE seat (
  run_id BIGINT NOT NULL,
  n BIGINT NOT NULL,
  owner VARBINARY(64) NOT NULL,
  PRIMARY KEY (run_id, n)
) ENGINE = InnoDB;

CREATE TABLE fence (
  name VARBINARY(255) NOT NULL PRIMARY KEY,
  epoch BIGINT NOT NULL,
  number BIGINT NOT NULL
) ENGINE = InnoDB;
