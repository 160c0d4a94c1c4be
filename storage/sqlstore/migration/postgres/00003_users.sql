-- +goose Up
-- Who may sign in at the pages, and what proves that they did. Secrets are kept as hashes only.

CREATE TABLE account (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  role TEXT COLLATE "C" NOT NULL,
  tenant TEXT COLLATE "C" NOT NULL,
  pass_hash TEXT COLLATE "C" NOT NULL,
  created BIGINT NOT NULL
);

-- At most one row: the secret that makes the first user.
CREATE TABLE set_up (
  id SMALLINT NOT NULL PRIMARY KEY,
  secret BYTEA NOT NULL,
  expires BIGINT NOT NULL
);

CREATE TABLE sign_in (
  secret BYTEA NOT NULL PRIMARY KEY,
  account TEXT COLLATE "C" NOT NULL,
  expires BIGINT NOT NULL
);
CREATE INDEX sign_in_account ON sign_in (account);
CREATE INDEX sign_in_expires ON sign_in (expires);

CREATE TABLE api_token (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  secret BYTEA NOT NULL,
  account TEXT COLLATE "C" NOT NULL,
  label TEXT COLLATE "C" NOT NULL,
  created BIGINT NOT NULL,
  used BIGINT NOT NULL
);
CREATE UNIQUE INDEX api_token_secret ON api_token (secret);
CREATE INDEX api_token_account ON api_token (account);
INSERT INTO sequence (name, last) VALUES ('account', 0);
