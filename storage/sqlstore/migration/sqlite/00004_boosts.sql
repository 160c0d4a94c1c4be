-- +goose Up
-- Queued URLs that somebody looks at, with the time until which they leave before others.

CREATE TABLE boost (
  run_id BIGINT NOT NULL,
  id BIGINT NOT NULL,
  host_id BIGINT NOT NULL,
  weight BIGINT NOT NULL,
  ends BIGINT NOT NULL,
  PRIMARY KEY (run_id, id)
) WITHOUT ROWID;
CREATE INDEX boost_ends ON boost (ends);
