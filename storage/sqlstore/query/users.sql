-- Columns of a user, in the order scanUser reads them: name, role, tenant, pass_hash, created.

-- name: user_get
-- in: name text
SELECT a.name, a.role, a.tenant, a.pass_hash, a.created FROM account a WHERE a.name = :name

-- name: user_list
SELECT a.name, a.role, a.tenant, a.pass_hash, a.created FROM account a ORDER BY a.name

-- name: user_count
-- in: role text
-- All where the role is empty.
SELECT COUNT(*) FROM account a WHERE :role = '' OR a.role = :role

-- name: user_insert
-- in: name text, role text, tenant text, hash text
INSERT INTO account (name, role, tenant, pass_hash, created) SELECT :name, :role, :tenant, :hash, :now

-- name: user_update
-- in: name text, role text, tenant text, hash text
UPDATE account SET role = :role, tenant = :tenant, pass_hash = CASE WHEN :hash = '' THEN pass_hash ELSE :hash END WHERE name = :name

-- name: user_drop
-- in: name text
DELETE FROM account WHERE name = :name

-- name: users_hold
-- Whoever changes users goes one after the other: the last operator must not be lost between two.
UPDATE sequence SET last = last + 1 WHERE name = 'account'

-- name: set_up_drop
DELETE FROM set_up WHERE id = 1

-- name: set_up_put
-- in: secret bytes, valid int
INSERT INTO set_up (id, secret, expires) SELECT 1, :secret, :now + :valid

-- name: set_up_get
-- in: secret bytes
SELECT COUNT(*) FROM set_up s WHERE s.id = 1 AND s.secret = :secret AND s.expires > :now

-- name: sign_in_put
-- in: secret bytes, account text, valid int
INSERT INTO sign_in (secret, account, expires) SELECT :secret, :account, :now + :valid

-- name: sign_in_user
-- in: secret bytes
SELECT a.name, a.role, a.tenant, a.pass_hash, a.created FROM sign_in s JOIN account a ON a.name = s.account
WHERE s.secret = :secret AND s.expires > :now

-- name: sign_in_drop
-- in: secret bytes
DELETE FROM sign_in WHERE secret = :secret

-- name: sign_in_drop_user
-- in: account text
DELETE FROM sign_in WHERE account = :account

-- name: sign_in_prune
DELETE FROM sign_in WHERE expires <= :now

-- name: token_put
-- in: id text, secret bytes, account text, label text
INSERT INTO api_token (id, secret, account, label, created, used) SELECT :id, :secret, :account, :label, :now, 0

-- name: token_user
-- in: secret bytes
SELECT a.name, a.role, a.tenant, a.pass_hash, a.created, CASE WHEN t.used < :now - 60000000 THEN 1 ELSE 0 END
FROM api_token t JOIN account a ON a.name = t.account WHERE t.secret = :secret

-- name: token_used
-- in: secret bytes
UPDATE api_token SET used = :now WHERE secret = :secret

-- name: token_list
-- in: account text
SELECT t.id, t.account, t.label, t.created, t.used FROM api_token t WHERE :account = '' OR t.account = :account ORDER BY t.id

-- name: token_drop
-- in: account text, id text
DELETE FROM api_token WHERE id = :id AND (:account = '' OR account = :account)

-- name: token_drop_user
-- in: account text
DELETE FROM api_token WHERE account = :account

-- name: tenant_sign_ins
-- in: tenant text
DELETE FROM sign_in WHERE account IN (SELECT a.name FROM account a WHERE a.tenant = :tenant)

-- name: tenant_tokens
-- in: tenant text
DELETE FROM api_token WHERE account IN (SELECT a.name FROM account a WHERE a.tenant = :tenant)

-- name: tenant_accounts
-- in: tenant text
DELETE FROM account WHERE tenant = :tenant

-- name: timeline
-- Reads a whole run.
-- in: run int, first int, last int, width int, fetched int, failed int, excluded int
SELECT p.fetched - p.fetched % :width AS start_at, SUM(CASE WHEN p.state = :fetched THEN 1 ELSE 0 END), SUM(CASE WHEN p.state = :failed THEN 1 ELSE 0 END),
  SUM(CASE WHEN p.state = :excluded THEN 1 ELSE 0 END)
FROM page p WHERE p.run_id = :run AND p.id >= :first AND p.id < :last GROUP BY p.fetched - p.fetched % :width ORDER BY 1
