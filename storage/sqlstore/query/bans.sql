-- name: ban_put
-- in: host text, reason text
INSERT INTO host_ban (host, reason, since) SELECT :host, :reason, :now WHERE 1 = 1
ON CONFLICT (host) DO UPDATE SET reason = excluded.reason

-- name: ban_drop
-- in: host text
DELETE FROM host_ban WHERE host = :host

-- name: ban_list
SELECT b.host, b.reason, b.since FROM host_ban b ORDER BY b.host
