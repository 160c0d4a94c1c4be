-- +goose Up
-- What the cluster needs beside the runs: tenants and their tariffs, places, banned hosts, schedules.

-- 0 is no limit.
CREATE TABLE tariff (
  name VARBINARY(64) NOT NULL PRIMARY KEY,
  parallel_runs BIGINT NOT NULL,
  workers BIGINT NOT NULL,
  run_pages BIGINT NOT NULL,
  stored_pages BIGINT NOT NULL
) ENGINE = InnoDB;
INSERT INTO tariff (name, parallel_runs, workers, run_pages, stored_pages) VALUES
  ('unlimited', 0, 0, 0, 0),
  ('small', 1, 1, 10000, 100000),
  ('medium', 3, 4, 100000, 1000000),
  ('large', 10, 12, 1000000, 20000000);

CREATE TABLE tenant (
  name VARBINARY(255) NOT NULL PRIMARY KEY,
  tariff VARBINARY(64) NOT NULL,
  suspended SMALLINT NOT NULL,
  deleting SMALLINT NOT NULL,
  created BIGINT NOT NULL
) ENGINE = InnoDB;
INSERT INTO tenant (name, tariff, suspended, deleting, created) VALUES ('local', 'unlimited', 0, 0, CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED));
INSERT INTO tenant (name, tariff, suspended, deleting, created)
SELECT q.tenant, 'unlimited', 0, 0, MIN(q.created) FROM run q WHERE q.tenant <> 'local' GROUP BY q.tenant;

-- The places of active runs under their tenant's tariff: numbered, so that the primary key holds the limit.
CREATE TABLE run_place (
  tenant VARBINARY(255) NOT NULL,
  n BIGINT NOT NULL,
  run_id BIGINT NOT NULL,
  PRIMARY KEY (tenant, n)
) ENGINE = InnoDB;
CREATE UNIQUE INDEX run_place_run ON run_place (run_id);
INSERT INTO run_place (tenant, n, run_id)
SELECT q.tenant, 4294967296 + q.id, q.id FROM run q WHERE q.state IN ('preparing', 'crawling', 'finishing') AND q.deleting = 0;

-- Pages of a run that is over, once that is settled; else they are added up from the tally.
ALTER TABLE run ADD COLUMN stored BIGINT;
-- The queues: of all nodes (home is empty) by tenant, and of those with a home.
CREATE INDEX run_queue ON run (state, home, tenant, id);

CREATE TABLE host_ban (
  host VARBINARY(255) NOT NULL PRIMARY KEY,
  reason BLOB NOT NULL,
  since BIGINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE schedule (
  id BIGINT NOT NULL PRIMARY KEY,
  tenant VARBINARY(255) NOT NULL,
  name VARBINARY(100) NOT NULL,
  site VARBINARY(255) NOT NULL,
  spec MEDIUMBLOB,
  every_us BIGINT NOT NULL,
  cron BLOB NOT NULL,
  zone VARBINARY(64) NOT NULL,
  next_due BIGINT NOT NULL,
  last_run BIGINT NOT NULL,
  created BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE INDEX schedule_due ON schedule (next_due);
INSERT INTO sequence (name, last) VALUES ('schedule', 0);
