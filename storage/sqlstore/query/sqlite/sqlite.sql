-- Rows of a run stand together by id here, so ranges of ids never need the index on keys, which the planner would take
-- because it leads with the run.

-- name: url_insert
INSERT INTO url (run_id, id, ukey, host_id, priority, depth, via, lastmod, discovered, url)
VALUES (:run, :id, :ukey, :host, :priority, :depth, :via, :lastmod, :now, :url)
ON CONFLICT (run_id, ukey) DO NOTHING

-- name: page_insert
INSERT INTO page (run_id, id, token, fetched, state, status, attempts, outlinks, bytes, wire_bytes, ttfb_us, total_us, reason, content_type, title, redirect_to, facts)
VALUES (:run, :id, :token, :now, :state, :status, :attempts, :outlinks, :bytes, :wire, :ttfb, :total, :reason, :ctype, :title, :redirect, :facts)

-- name: claim_insert
INSERT INTO claim (run_id, id, token, owner, attempts) VALUES (:run, :id, :token, :owner, :attempts)

-- name: frontier_fill
INSERT INTO frontier (run_id, host_id, pos, id, weight, via, attempts, token, reason, url)
SELECT u.run_id, u.host_id, u.priority * 65536 + u.depth, u.id, u.priority * 65536 + u.depth, u.via, 0, 0, '', u.url
FROM url u NOT INDEXED WHERE u.run_id = :run AND u.id BETWEEN :low AND :high

-- name: tally_found
INSERT INTO tally (run_id, shard, name, n)
SELECT :run, :shard, 'discovered', COUNT(*) FROM url u NOT INDEXED WHERE u.run_id = :run AND u.id BETWEEN :low AND :high
ON CONFLICT (run_id, shard, name) DO UPDATE SET n = tally.n + excluded.n

-- name: url_list
SELECT u.id, u.url, u.ukey, (SELECT h.name FROM host h WHERE h.id = u.host_id), u.depth, u.via, u.priority, u.discovered, i.n,
  CASE WHEN p.id IS NOT NULL THEN p.state WHEN c.id IS NOT NULL THEN 2 WHEN f.id IS NOT NULL OR g.id IS NOT NULL THEN 1 ELSE 3 END,
  p.reason, p.status, p.content_type, p.bytes, p.wire_bytes, p.ttfb_us, p.total_us, COALESCE(p.attempts, c.attempts, f.attempts, g.attempts, 0), p.title, p.redirect_to, p.outlinks, p.fetched,
  CASE WHEN :facts = 1 THEN p.facts END, CASE WHEN :links = 1 THEN l.links END
FROM url u NOT INDEXED
  LEFT JOIN page p ON p.run_id = u.run_id AND p.id = u.id
  LEFT JOIN claim c ON c.run_id = u.run_id AND c.id = u.id
  LEFT JOIN frontier f ON f.run_id = u.run_id AND f.host_id = u.host_id AND f.pos = u.priority * 65536 + u.depth AND f.id = u.id
  LEFT JOIN frontier g ON g.run_id = u.run_id AND g.host_id = u.host_id AND g.pos = u.priority * 65536 + u.depth + :again AND g.id = u.id
  LEFT JOIN inlink i ON i.run_id = u.run_id AND i.id = u.id
  LEFT JOIN page_link l ON l.run_id = u.run_id AND l.id = u.id AND :links = 1
WHERE u.run_id = :run AND u.id > :after AND u.id < :end
ORDER BY u.id LIMIT :n

-- name: page_list
SELECT u.id, u.url, u.ukey, (SELECT h.name FROM host h WHERE h.id = u.host_id), u.depth, u.via, u.priority, u.discovered, i.n,
  p.state, p.reason, p.status, p.content_type, p.bytes, p.wire_bytes, p.ttfb_us, p.total_us, p.attempts, p.title, p.redirect_to, p.outlinks, p.fetched,
  CASE WHEN :facts = 1 THEN p.facts END, CASE WHEN :links = 1 THEN l.links END
FROM page p CROSS JOIN url u NOT INDEXED
  LEFT JOIN inlink i ON i.run_id = p.run_id AND i.id = p.id
  LEFT JOIN page_link l ON l.run_id = p.run_id AND l.id = p.id AND :links = 1
WHERE u.id = p.id AND p.run_id = :run AND p.id > :after AND p.id < :end AND p.state IN (:s1, :s2, :s3)
  AND (:any_reason = 1 OR p.reason = :reason) AND p.status >= :status_low AND p.status <= :status_high
ORDER BY p.id LIMIT :n

-- name: cut_url
SELECT MAX(x.id), COUNT(*) FROM (SELECT p.id FROM url p NOT INDEXED WHERE p.run_id = :run AND p.id >= :first ORDER BY p.id LIMIT :n) x

-- name: delete_url
DELETE FROM url NOT INDEXED WHERE run_id = :run AND id >= :first AND id <= :last
