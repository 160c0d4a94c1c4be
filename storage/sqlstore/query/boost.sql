-- name: boost_find
-- in: run int
-- rows: ukey bytes
SELECT u.id, u.host_id, u.priority * 65536 + u.depth FROM url u WHERE u.run_id = :run AND u.ukey = :ukey

-- name: boost_places
-- rows: run int, host int, id int, fresh int, held int, first int, firstheld int
-- Where in the frontier queued URLs are: each is at one of four places, or not queued.
SELECT f.id, f.pos FROM frontier f WHERE f.run_id = :run AND f.host_id = :host AND f.pos IN (:fresh, :held, :first, :firstheld) AND f.id = :id

-- name: boost_move
-- rows: run int, host int, pos int, id int, target int
UPDATE frontier SET pos = :target WHERE run_id = :run AND host_id = :host AND pos = :pos AND id = :id

-- name: boost_put
-- in: wait int
-- rows: run int, id int, host int, weight int
INSERT INTO boost (run_id, id, host_id, weight, ends) SELECT r.run, r.id, r.host, r.weight, :now + :wait FROM :rows r WHERE 1 = 1
ON CONFLICT (run_id, id) DO UPDATE SET ends = excluded.ends

-- name: boost_over
-- in: n int
SELECT b.run_id, b.host_id, b.id, b.weight, b.ends FROM boost b WHERE b.ends <= :now ORDER BY b.ends LIMIT :n

-- name: boost_drop
-- rows: run int, id int, ends int
DELETE FROM boost WHERE run_id = :run AND id = :id AND ends = :ends

-- name: url_boosted
-- in: run int, low int, high int
-- rows: host text
SELECT f.id, f.attempts, f.pos FROM frontier f
WHERE f.run_id = :run AND f.host_id = (SELECT h.id FROM host h WHERE h.name = :host) AND f.pos >= :low AND f.pos <= :high

-- name: delete_rest_boosts
-- in: run int
DELETE FROM boost WHERE run_id = :run
