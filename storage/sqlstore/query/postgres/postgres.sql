-- Rows that others could take too are locked as they are read; joins with the table input take the place of many executions.

-- name: budget_lock
SELECT q.id, q.allotted FROM run q WHERE q.id = :run AND q.state = 'crawling' AND q.deleting = 0 FOR UPDATE

-- name: claim_pick
SELECT f.id, f.pos, f.weight, f.via, f.attempts, f.url FROM frontier f
WHERE f.run_id = :run AND f.host_id = :host AND f.pos >= :low AND f.pos < :below
ORDER BY f.pos, f.id LIMIT :n FOR UPDATE SKIP LOCKED

-- name: frontier_delete
DELETE FROM frontier f USING :rows r WHERE f.run_id = r.run AND f.host_id = r.host AND f.pos = r.pos AND f.id = r.id

-- name: claim_delete
DELETE FROM claim c USING :rows r WHERE c.run_id = r.run AND c.id = r.id AND c.token = r.token

-- name: claim_match
SELECT c.run_id, c.id, c.token, c.attempts FROM :rows r JOIN claim c ON c.run_id = r.run AND c.id = r.id AND c.token = r.token FOR UPDATE OF c

-- name: claim_of_owner
SELECT c.run_id, c.id, c.token, c.attempts FROM claim c WHERE c.owner = :owner ORDER BY c.run_id, c.id LIMIT :n FOR UPDATE

-- name: frontier_some
SELECT f.host_id, f.pos, f.id, f.attempts FROM frontier f WHERE f.run_id = :run ORDER BY f.host_id, f.pos, f.id LIMIT :n FOR UPDATE

-- name: frontier_promote
UPDATE frontier f SET pos = f.weight + :again FROM :rows r WHERE f.run_id = r.run AND f.host_id = r.host AND f.pos >= :delayed AND f.pos <= :now

-- name: page_match
SELECT p.run_id, p.id, p.token FROM :rows r JOIN page p ON p.run_id = r.run AND p.id = r.id AND p.token = r.token

-- name: url_text
SELECT u.id, u.url FROM :rows r JOIN url u ON u.run_id = :run AND u.id = r.id

-- name: url_known
SELECT u.ukey, u.lastmod FROM :rows r JOIN url u ON u.run_id = :run AND u.ukey = r.ukey
