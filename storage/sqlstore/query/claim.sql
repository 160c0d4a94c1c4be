-- name: host_find
-- rows: name text
SELECT h.id, h.name FROM :rows r JOIN host h ON h.name = r.name

-- name: host_add
-- rows: name text
INSERT INTO host (name) :values ON CONFLICT (name) DO NOTHING

-- name: claim_runs
-- rows: run int
-- Those of the runs that may be claimed from, with what their page limit has given out.
SELECT q.id, q.allotted FROM :rows r JOIN run q ON q.id = r.run WHERE q.state = 'crawling' AND q.deleting = 0

-- name: budget_lock
-- rows: run int
-- Makes claims of runs with a page limit wait for each other; overrides lock the rows.
SELECT q.id, q.allotted FROM run q WHERE q.id = :run AND q.state = 'crawling' AND q.deleting = 0

-- name: budget_set
-- in: run int, n int
UPDATE run SET allotted = :n WHERE id = :run

-- name: budget_give
-- rows: run int, n int
-- Gives places back.
UPDATE run SET allotted = allotted - :n WHERE id = :run AND allotted IS NOT NULL

-- name: frontier_promote
-- rows: run int, host int
-- in: delayed int, again int
-- Delayed URLs that are due take their place in the order again, among those that hold a place under the page limit.
UPDATE frontier SET pos = weight + :again WHERE run_id = :run AND host_id = :host AND pos >= :delayed AND pos <= :now

-- name: claim_pick
-- in: run int, host int, low int, below int, n int
SELECT f.id, f.pos, f.weight, f.via, f.attempts, f.url FROM frontier f
WHERE f.run_id = :run AND f.host_id = :host AND f.pos >= :low AND f.pos < :below
ORDER BY f.pos, f.id LIMIT :n

-- name: frontier_delete
-- rows: run int, host int, pos int, id int
DELETE FROM frontier WHERE run_id = :run AND host_id = :host AND pos = :pos AND id = :id

-- name: claim_insert
-- in: owner text
-- rows: run int, id int, token int, attempts int
INSERT INTO claim (run_id, id, token, owner, attempts) SELECT r.run, r.id, r.token, :owner, r.attempts FROM :rows r

-- name: claim_delete
-- rows: run int, id int, token int
DELETE FROM claim WHERE run_id = :run AND id = :id AND token = :token

-- name: claim_match
-- rows: run int, id int, token int
-- Claims that still carry their token; overrides lock them.
SELECT c.run_id, c.id, c.token, c.attempts FROM claim c WHERE c.run_id = :run AND c.id = :id AND c.token = :token

-- name: claim_of_owner
-- in: owner text, n int
SELECT c.run_id, c.id, c.token, c.attempts FROM claim c WHERE c.owner = :owner ORDER BY c.run_id, c.id LIMIT :n

-- name: owners
SELECT c.owner FROM claim c UNION SELECT s.owner FROM seat s

-- name: claim_of_call
-- in: owner text, base int
-- rows: run int
-- What one call of Claim has claimed: all its tokens are a number of its own plus the id.
SELECT c.run_id, c.id, c.token, c.attempts, u.priority * 65536 + u.depth, u.via, u.url, (SELECT h.name FROM host h WHERE h.id = u.host_id)
FROM claim c JOIN url u ON u.run_id = c.run_id AND u.id = c.id
WHERE c.run_id = :run AND c.owner = :owner AND c.token - c.id = :base ORDER BY c.id

-- name: frontier_put
-- rows: run int, id int, shift int, attempts int
-- in: again int, boost int
-- Queues URLs again that were claimed. Those that are looked at still go before others again; shift is 0 for those that were never requested.
INSERT INTO frontier (run_id, host_id, pos, id, weight, via, attempts, token, reason, url)
SELECT u.run_id, u.host_id, CASE WHEN NOT EXISTS (SELECT 1 FROM boost b WHERE b.run_id = r.run AND b.id = r.id) THEN u.priority * 65536 + u.depth + r.shift
    WHEN r.shift = 0 THEN u.priority * 65536 + u.depth - :boost ELSE :again END, u.id, u.priority * 65536 + u.depth, u.via, r.attempts, 0, '', u.url
FROM :rows r JOIN url u ON u.run_id = r.run AND u.id = r.id

-- name: ready_hosts
-- in: run int, delayed int, host int, chunk int
-- The next hosts of a run, behind one, that have unfinished URLs: their first position, and that of their first one that is not due yet.
WITH RECURSIVE w (host_id, k) AS (
  SELECT MIN(f.host_id), 1 FROM frontier f WHERE f.run_id = :run AND f.host_id > :host
  UNION ALL
  SELECT (SELECT MIN(f.host_id) FROM frontier f WHERE f.run_id = :run AND f.host_id > w.host_id), w.k + 1
  FROM w WHERE w.host_id IS NOT NULL AND w.k < :chunk
)
SELECT :run, h.name,
  (SELECT MIN(f.pos) FROM frontier f WHERE f.run_id = :run AND f.host_id = w.host_id),
  COALESCE((SELECT MIN(f.pos) FROM frontier f WHERE f.run_id = :run AND f.host_id = w.host_id AND f.pos >= :delayed AND f.pos > :now), 0),
  :now, w.host_id
FROM w JOIN host h ON h.id = w.host_id

-- name: ready_claimed
-- rows: run int
SELECT r.run FROM :rows r WHERE EXISTS (SELECT 1 FROM claim c WHERE c.run_id = r.run)

-- name: frontier_some
-- in: run int, n int
-- Any unfinished URLs of a run; overrides lock them.
SELECT f.host_id, f.pos, f.id, f.attempts FROM frontier f WHERE f.run_id = :run ORDER BY f.host_id, f.pos, f.id LIMIT :n
