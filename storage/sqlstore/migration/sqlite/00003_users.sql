-- +goose Up
-- Who may sign in at the pages, and what proves that they did. Secrets are kept as hashes only.

CREATE TABLE account (
  name TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  tenant TEXT NOT NULL,
  pass_hash TEXT NOT NULL,
  created BIGINT NOT NULL
) WITHOUT ROWID;

-- At most one row: the secret that makes the first user.
CREATE TABLE set_up (
  id SMALLINT NOT NULL PRIMARY KEY,
  secret BLOB NOT NULL,
  expires BIGINT NOT NULL
);

CREATE TABLE sign_in (
  secret BLOB NOT NULL PRIMARY KEY,
  account TEXT NOT NULL,
  expires BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sign_in_account ON sign_in (account);
CREATE INDEX sign_in_expires ON sign_in (expires);

CREATE TABLE api_token (
  id TEXT NOT NULL PRIMARY KEY,
  secret BLOB NOT NULL,
  account TEXT NOT NULL,
  label TEXT NOT NULL,
  created BIGINT NOT NULL,
  used BIGINT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX api_token_secret ON api_token (secret);
CREATE INDEX api_token_account ON api_token (account);
INSERT INTO sequence (name, last) VALUES ('account', 0);
