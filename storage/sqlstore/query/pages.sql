-- Columns of a page row, in the order pageRow reads them: id, url, ukey, host, depth, via, priority, discovered, inlinks,
-- state, reason, status, content_type, bytes, wire_bytes, ttfb, total, attempts, title, redirect_to, outlinks, fetched, facts, links.

-- name: page_list
-- in: run int, after int, end int, n int, s1 int, s2 int, s3 int, any_reason int, reason text, status_low int, status_high int, facts int, links int
SELECT u.id, u.url, u.ukey, (SELECT h.name FROM host h WHERE h.id = u.host_id), u.depth, u.via, u.priority, u.discovered, i.n,
  p.state, p.reason, p.status, p.content_type, p.bytes, p.wire_bytes, p.ttfb_us, p.total_us, p.attempts, p.title, p.redirect_to, p.outlinks, p.fetched,
  CASE WHEN :facts = 1 THEN p.facts END, CASE WHEN :links = 1 THEN l.links END
FROM page p JOIN url u ON u.run_id = p.run_id AND u.id = p.id
  LEFT JOIN inlink i ON i.run_id = p.run_id AND i.id = p.id
  LEFT JOIN page_link l ON l.run_id = p.run_id AND l.id = p.id AND :links = 1
WHERE p.run_id = :run AND p.id > :after AND p.id < :end AND p.state IN (:s1, :s2, :s3)
  AND (:any_reason = 1 OR p.reason = :reason) AND p.status >= :status_low AND p.status <= :status_high
ORDER BY p.id LIMIT :n

-- name: url_list
-- in: run int, after int, end int, n int, facts int, links int, again int
-- All URLs of a run. What has neither a page nor a claim nor its own place in the queue is delayed or boosted.
SELECT u.id, u.url, u.ukey, (SELECT h.name FROM host h WHERE h.id = u.host_id), u.depth, u.via, u.priority, u.discovered, i.n,
  CASE WHEN p.id IS NOT NULL THEN p.state WHEN c.id IS NOT NULL THEN 2 WHEN f.id IS NOT NULL OR g.id IS NOT NULL THEN 1 ELSE 3 END,
  p.reason, p.status, p.content_type, p.bytes, p.wire_bytes, p.ttfb_us, p.total_us, COALESCE(p.attempts, c.attempts, f.attempts, g.attempts, 0), p.title, p.redirect_to, p.outlinks, p.fetched,
  CASE WHEN :facts = 1 THEN p.facts END, CASE WHEN :links = 1 THEN l.links END
FROM url u
  LEFT JOIN page p ON p.run_id = u.run_id AND p.id = u.id
  LEFT JOIN claim c ON c.run_id = u.run_id AND c.id = u.id
  LEFT JOIN frontier f ON f.run_id = u.run_id AND f.host_id = u.host_id AND f.pos = u.priority * 65536 + u.depth AND f.id = u.id
  LEFT JOIN frontier g ON g.run_id = u.run_id AND g.host_id = u.host_id AND g.pos = u.priority * 65536 + u.depth + :again AND g.id = u.id
  LEFT JOIN inlink i ON i.run_id = u.run_id AND i.id = u.id
  LEFT JOIN page_link l ON l.run_id = u.run_id AND l.id = u.id AND :links = 1
WHERE u.run_id = :run AND u.id > :after AND u.id < :end
ORDER BY u.id LIMIT :n

-- name: url_delayed
-- in: run int, delayed int
-- rows: host text
SELECT f.id, f.attempts, f.reason FROM frontier f
WHERE f.run_id = :run AND f.host_id = (SELECT h.id FROM host h WHERE h.name = :host) AND f.pos >= :delayed

-- name: url_by_key
-- in: run int, ukey bytes
SELECT u.id FROM url u WHERE u.run_id = :run AND u.ukey = :ukey

-- name: url_text
-- in: run int
-- rows: id int
SELECT u.id, u.url FROM url u WHERE u.run_id = :run AND :any(u.id = :id)

-- name: url_by_prefix
-- in: run int
-- rows: low bytes, high bytes
-- One row or none each; a join would make PostgreSQL, which cannot tell how narrow the range is, read all pages.
SELECT u.ukey, u.id, u.url, (SELECT p.state FROM page p WHERE p.run_id = u.run_id AND p.id = u.id),
  (SELECT p.status FROM page p WHERE p.run_id = u.run_id AND p.id = u.id), (SELECT p.reason FROM page p WHERE p.run_id = u.run_id AND p.id = u.id)
FROM url u WHERE u.run_id = :run AND :any(u.ukey BETWEEN :low AND :high)

-- name: url_known
-- in: run int
-- rows: ukey bytes
SELECT u.ukey, u.lastmod FROM url u WHERE u.run_id = :run AND :any(u.ukey = :ukey)

-- name: page_top_bytes
-- in: run int, first int, end int, n int
SELECT p.id FROM page p WHERE p.run_id = :run AND p.id >= :first AND p.id < :end ORDER BY p.bytes DESC, p.id LIMIT :n

-- name: page_top_total
-- in: run int, first int, end int, n int
SELECT p.id FROM page p WHERE p.run_id = :run AND p.id >= :first AND p.id < :end ORDER BY p.total_us DESC, p.id LIMIT :n

-- name: link_list
-- in: run int, after int, end int, n int
SELECT l.id, l.links FROM page_link l WHERE l.run_id = :run AND l.id > :after AND l.id < :end ORDER BY l.id LIMIT :n

-- name: inlink_find
-- in: run int
-- rows: low bytes, high bytes
SELECT u.ukey, u.id FROM url u WHERE u.run_id = :run AND :any(u.ukey BETWEEN :low AND :high)

-- name: inlink_save
-- rows: run int, id int, n int, source int
INSERT INTO inlink (run_id, id, n, source_id) SELECT r.run, r.id, r.n, r.source FROM :rows r WHERE 1 = 1
ON CONFLICT (run_id, id) DO UPDATE SET n = excluded.n, source_id = excluded.source_id

-- name: inlink_mark
-- in: run int
UPDATE run SET inlinked = 1 WHERE id = :run

-- name: broken_links
-- in: run int, first int, end int, n int, failed int
SELECT p.id, u.url, p.status, p.reason, i.n, s.url
FROM page p JOIN inlink i ON i.run_id = p.run_id AND i.id = p.id JOIN url u ON u.run_id = p.run_id AND u.id = p.id
  LEFT JOIN url s ON s.run_id = p.run_id AND s.id = i.source_id
WHERE p.run_id = :run AND p.id >= :first AND p.id < :end AND (p.status >= 400 OR p.state = :failed AND (p.status < 200 OR p.status > 299)) AND i.n > 0
ORDER BY i.n DESC, p.id LIMIT :n
