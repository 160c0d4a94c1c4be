-- Rows that others could take too are locked as they are read, in the order of one index: InnoDB locks every row it looks at.
-- Its INSERT has no ON CONFLICT; IGNORE is used only where a duplicate is all that can go wrong. Times of insert-only tables are column
-- defaults, so that rows go in as VALUES.

-- name: host_add
INSERT IGNORE INTO host (name) :values

-- name: budget_lock
SELECT q.id, q.allotted FROM run q WHERE q.id = :run AND q.state = 'crawling' AND q.deleting = 0 FOR UPDATE

-- name: claim_pick
SELECT f.id, f.pos, f.weight, f.via, f.attempts, f.url FROM frontier f
WHERE f.run_id = :run AND f.host_id = :host AND f.pos >= :low AND f.pos < :below
ORDER BY f.pos, f.id LIMIT :n FOR UPDATE SKIP LOCKED

-- name: frontier_delete
DELETE f FROM :rows r STRAIGHT_JOIN frontier f ON f.run_id = r.run AND f.host_id = r.host AND f.pos = r.pos AND f.id = r.id

-- name: claim_delete
DELETE c FROM :rows r STRAIGHT_JOIN claim c ON c.run_id = r.run AND c.id = r.id AND c.token = r.token

-- name: claim_match
SELECT c.run_id, c.id, c.token, c.attempts FROM claim c WHERE c.run_id = :run AND c.id = :id AND c.token = :token FOR UPDATE

-- name: claim_of_owner
SELECT c.run_id, c.id, c.token, c.attempts FROM claim c WHERE c.owner = :owner ORDER BY c.run_id, c.id LIMIT :n FOR UPDATE

-- name: frontier_some
SELECT f.host_id, f.pos, f.id, f.attempts FROM frontier f WHERE f.run_id = :run ORDER BY f.host_id, f.pos, f.id LIMIT :n FOR UPDATE

-- name: page_insert
INSERT INTO page (run_id, id, token, state, status, attempts, outlinks, bytes, wire_bytes, ttfb_us, total_us, reason, content_type, title, redirect_to, facts)
:values

-- name: url_insert
INSERT IGNORE INTO url (run_id, id, ukey, host_id, priority, depth, via, lastmod, url) :values

-- name: tally_found
INSERT INTO tally (run_id, shard, name, n)
SELECT :run, :shard, 'discovered', COUNT(*) FROM url u WHERE u.run_id = :run AND u.id >= :low AND u.id <= :high
ON DUPLICATE KEY UPDATE tally.n = tally.n + VALUES(n)

-- name: tally_excluded
INSERT INTO tally (run_id, shard, name, n)
SELECT r.run, :shard, r.name, COUNT(*) FROM :rows r JOIN url u ON u.run_id = r.run AND u.id = r.id GROUP BY r.run, r.name
ON DUPLICATE KEY UPDATE tally.n = tally.n + VALUES(n)

-- name: tally_add
INSERT INTO tally (run_id, shard, name, n) SELECT r.run, :shard, r.name, r.n FROM :rows r
ON DUPLICATE KEY UPDATE tally.n = tally.n + VALUES(n)

-- name: fence_add
INSERT IGNORE INTO fence (name, epoch, number) VALUES (:name, :epoch, :number)

-- name: step_save
INSERT INTO run_step (run_id, name, progress, done, updated) SELECT :run, :name, :progress, :done, :now
ON DUPLICATE KEY UPDATE progress = VALUES(progress), done = VALUES(done), updated = VALUES(updated)

-- name: inlink_save
INSERT INTO inlink (run_id, id, n, source_id) :values ON DUPLICATE KEY UPDATE n = VALUES(n), source_id = VALUES(source_id)
