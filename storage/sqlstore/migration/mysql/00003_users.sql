-- +goose Up
-- Who may sign in at the pages, and what proves that they did. Secrets are kept as hashes only.

CREATE TABLE account (
  name VARBINARY(64) NOT NULL PRIMARY KEY,
  role VARBINARY(32) NOT NULL,
  tenant VARBINARY(255) NOT NULL,
  pass_hash VARBINARY(255) NOT NULL,
  created BIGINT NOT NULL
) ENGINE = InnoDB;

-- At most one row: the secret that makes the first user.
CREATE TABLE set_up (
  id SMALLINT NOT NULL PRIMARY KEY,
  secret BINARY(32) NOT NULL,
  expires BIGINT NOT NULL
) ENGINE = InnoDB;

CREATE TABLE sign_in (
  secret BINARY(32) NOT NULL PRIMARY KEY,
  account VARBINARY(64) NOT NULL,
  expires BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE INDEX sign_in_account ON sign_in (account);
CREATE INDEX sign_in_expires ON sign_in (expires);

CREATE TABLE api_token (
  id VARBINARY(32) NOT NULL PRIMARY KEY,
  secret BINARY(32) NOT NULL,
  account VARBINARY(64) NOT NULL,
  label VARBINARY(255) NOT NULL,
  created BIGINT NOT NULL,
  used BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE UNIQUE INDEX api_token_secret ON api_token (secret);
CREATE INDEX api_token_account ON api_token (account);
INSERT INTO sequence (name, last) VALUES ('account', 0);
