-- name: ids_take
-- in: run int, n int
UPDATE run SET next_url = next_url + :n WHERE id = :run

-- name: ids_taken
-- in: run int
SELECT next_url FROM run WHERE id = :run

-- name: page_insert
-- rows: run int, id int, token int, state int, status int, attempts int, outlinks int, bytes int, wire int, ttfb int, total int, reason text, ctype text, title text, redirect text, facts bytes
INSERT INTO page (run_id, id, token, fetched, state, status, attempts, outlinks, bytes, wire_bytes, ttfb_us, total_us, reason, content_type, title, redirect_to, facts)
SELECT r.run, r.id, r.token, :now, r.state, r.status, r.attempts, r.outlinks, r.bytes, r.wire, r.ttfb, r.total, r.reason, r.ctype, r.title, r.redirect, r.facts
FROM :rows r

-- name: link_insert
-- rows: run int, id int, links bytes
INSERT INTO page_link (run_id, id, links) :values

-- name: frontier_delay
-- rows: run int, id int, wait int, attempts int, token int, reason text
INSERT INTO frontier (run_id, host_id, pos, id, weight, via, attempts, token, reason, url)
SELECT u.run_id, u.host_id, :now + r.wait, u.id, u.priority * 65536 + u.depth, u.via, r.attempts, r.token, r.reason, u.url
FROM :rows r JOIN url u ON u.run_id = r.run AND u.id = r.id

-- name: url_insert
-- rows: run int, id int, ukey bytes, host int, priority int, depth int, via int, lastmod int, url text
-- The first discovery of a key is kept. Ids are taken beforehand: those that are there afterwards were new.
INSERT INTO url (run_id, id, ukey, host_id, priority, depth, via, lastmod, discovered, url)
SELECT r.run, r.id, r.ukey, r.host, r.priority, r.depth, r.via, r.lastmod, :now, r.url FROM :rows r WHERE 1 = 1
ON CONFLICT (run_id, ukey) DO NOTHING

-- name: frontier_fill
-- rows: run int, low int, high int
-- Queues those URLs of a range of ids that were new. Ranges are few, and no planner joins ranges well: one execution each.
INSERT INTO frontier (run_id, host_id, pos, id, weight, via, attempts, token, reason, url)
SELECT u.run_id, u.host_id, u.priority * 65536 + u.depth, u.id, u.priority * 65536 + u.depth, u.via, 0, 0, '', u.url
FROM url u WHERE u.run_id = :run AND u.id >= :low AND u.id <= :high

-- name: tally_found
-- in: shard int
-- rows: run int, low int, high int
INSERT INTO tally (run_id, shard, name, n)
SELECT :run, :shard, 'discovered', COUNT(*) FROM url u WHERE u.run_id = :run AND u.id >= :low AND u.id <= :high
ON CONFLICT (run_id, shard, name) DO UPDATE SET n = tally.n + excluded.n

-- name: page_exclude
-- rows: run int, id int, state int, reason text
-- Results of URLs that are excluded as they are discovered, where they were new.
INSERT INTO page (run_id, id, token, fetched, state, status, attempts, outlinks, bytes, wire_bytes, ttfb_us, total_us, reason, content_type, title, redirect_to, facts)
SELECT u.run_id, u.id, 0, :now, r.state, 0, 0, 0, 0, 0, 0, 0, r.reason, '', '', '', NULL
FROM :rows r JOIN url u ON u.run_id = r.run AND u.id = r.id

-- name: tally_excluded
-- in: shard int
-- rows: run int, id int, name text
INSERT INTO tally (run_id, shard, name, n)
SELECT r.run, :shard, r.name, COUNT(*) FROM :rows r JOIN url u ON u.run_id = r.run AND u.id = r.id WHERE 1 = 1 GROUP BY r.run, r.name
ON CONFLICT (run_id, shard, name) DO UPDATE SET n = tally.n + excluded.n

-- name: tally_add
-- in: shard int
-- rows: run int, name text, n int
INSERT INTO tally (run_id, shard, name, n) SELECT r.run, :shard, r.name, r.n FROM :rows r WHERE 1 = 1
ON CONFLICT (run_id, shard, name) DO UPDATE SET n = tally.n + excluded.n

-- name: tally_all
-- in: run int
SELECT name, n FROM tally WHERE run_id = :run

-- name: tally_list
-- rows: run int
SELECT y.run_id, y.name, y.n FROM tally y
WHERE y.run_id = :run AND y.name IN ('discovered', 'fetched', 'failed', 'excluded', 'bytes', 'wire', 'late')

-- name: count_claimed
-- in: run int
SELECT COUNT(*) FROM claim c WHERE c.run_id = :run

-- name: count_from
-- in: run int, low int, host int, chunk int
-- URLs in the frontier from a place on, for the next hosts behind one.
WITH RECURSIVE w (host_id, k) AS (
  SELECT MIN(f.host_id), 1 FROM frontier f WHERE f.run_id = :run AND f.host_id > :host
  UNION ALL
  SELECT (SELECT MIN(f.host_id) FROM frontier f WHERE f.run_id = :run AND f.host_id > w.host_id), w.k + 1
  FROM w WHERE w.host_id IS NOT NULL AND w.k < :chunk
)
SELECT w.host_id, (SELECT COUNT(*) FROM frontier f WHERE f.run_id = :run AND f.host_id = w.host_id AND f.pos >= :low) FROM w WHERE w.host_id IS NOT NULL

-- name: page_match
-- rows: run int, id int, token int
SELECT p.run_id, p.id, p.token FROM page p WHERE p.run_id = :run AND p.id = :id AND p.token = :token

-- name: delay_match
-- rows: run int, id int, token int
-- in: delayed int
-- Delays already written: looked for among all delayed URLs of the host, which only a result that is not its claim's needs.
SELECT f.run_id, f.id, f.token FROM url u JOIN frontier f ON f.run_id = u.run_id AND f.host_id = u.host_id AND f.pos >= :delayed AND f.id = u.id
WHERE u.run_id = :run AND u.id = :id AND f.token = :token

-- name: page_close
-- in: state int, reason text
-- rows: run int, id int, attempts int
INSERT INTO page (run_id, id, token, fetched, state, status, attempts, outlinks, bytes, wire_bytes, ttfb_us, total_us, reason, content_type, title, redirect_to, facts)
SELECT r.run, r.id, 0, :now, :state, 0, r.attempts, 0, 0, 0, 0, 0, :reason, '', '', '', NULL FROM :rows r
