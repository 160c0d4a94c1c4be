-- +goose Up
-- What the holders of leases did for the whole cluster, each act under its fence, in the order in which they were done.

CREATE TABLE leader_act (
  id BIGINT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  number BIGINT NOT NULL,
  owner TEXT NOT NULL,
  duty TEXT NOT NULL,
  at BIGINT NOT NULL
);
INSERT INTO sequence (name, last) VALUES ('act', 0);
