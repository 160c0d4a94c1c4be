-- Sums of BIGINT are NUMERIC here.

-- name: stored_settled
SELECT SUM(q.stored)::bigint FROM run q WHERE q.tenant = :name AND q.stored IS NOT NULL AND q.deleting = 0

-- name: stored_unsettled
SELECT SUM(y.n)::bigint FROM run q JOIN tally y ON y.run_id = q.id AND y.name IN ('fetched', 'failed')
WHERE q.tenant = :name AND q.stored IS NULL AND q.deleting = 0
