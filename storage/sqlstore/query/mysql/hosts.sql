-- MariaDB and MySQL look at one row for MIN() over a range of an index only where the bounds are constants, not columns of another table.
-- A variable of the session is one, so the hosts of a run are walked over by pairs of statements, many in one round trip.

-- name: walk_from
-- in: host int
-- instead: ready_hosts, count_from
SET @deepcrawl_host = :host

-- name: walk_next
-- in: run int
-- instead: ready_hosts, count_from
SELECT MIN(f.host_id) INTO @deepcrawl_host FROM frontier f WHERE f.run_id = :run AND f.host_id > @deepcrawl_host

-- name: walk_ready
-- in: run int, delayed int
-- instead: ready_hosts
SELECT :run, (SELECT h.name FROM host h WHERE h.id = @deepcrawl_host),
  (SELECT MIN(f.pos) FROM frontier f WHERE f.run_id = :run AND f.host_id = @deepcrawl_host),
  COALESCE((SELECT MIN(f.pos) FROM frontier f WHERE f.run_id = :run AND f.host_id = @deepcrawl_host AND f.pos >= :delayed AND f.pos > :now), 0),
  :now, @deepcrawl_host

-- name: walk_count
-- in: run int, low int
-- instead: count_from
SELECT @deepcrawl_host, (SELECT COUNT(*) FROM frontier f WHERE f.run_id = :run AND f.host_id = @deepcrawl_host AND f.pos >= :low)
