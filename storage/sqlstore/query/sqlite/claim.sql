-- With one writer nobody can take a row between the pick and the claim, so what was picked is a range of places.

-- name: claim_range
-- in: owner text, base int
-- rows: run int, host int, low int, pos int, id int
-- instead: claim_insert
INSERT INTO claim (run_id, id, token, owner, attempts)
SELECT f.run_id, f.id, :base + f.id, :owner, f.attempts FROM frontier f
WHERE f.run_id = :run AND f.host_id = :host AND f.pos >= :low AND (f.pos, f.id) <= (:pos, :id)

-- name: frontier_cut
-- rows: run int, host int, low int, pos int, id int
-- instead: frontier_delete
DELETE FROM frontier WHERE run_id = :run AND host_id = :host AND pos >= :low AND (pos, id) <= (:pos, :id)
