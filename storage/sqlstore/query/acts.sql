-- name: act_number
-- Acts are numbered under the lock of their fence's row, so that their numbers grow in the order in which they are done.
UPDATE sequence SET last = last + 1 WHERE name = 'act'

-- name: act_insert
-- in: name text, epoch int, number int, owner text, duty text
INSERT INTO leader_act (id, name, epoch, number, owner, duty, at)
SELECT q.last, :name, :epoch, :number, :owner, :duty, :now FROM sequence q WHERE q.name = 'act'

-- name: act_prune
-- in: keep int
DELETE FROM leader_act WHERE id <= (SELECT q.last FROM sequence q WHERE q.name = 'act') - :keep

-- name: act_list
-- in: name text, limit int
SELECT a.name, a.epoch, a.number, a.owner, a.duty, a.at FROM leader_act a WHERE a.name = :name ORDER BY a.id DESC LIMIT :limit
