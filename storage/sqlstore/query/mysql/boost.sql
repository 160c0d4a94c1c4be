-- INSERT without ON CONFLICT, as in mysql.sql.

-- name: boost_put
INSERT INTO boost (run_id, id, host_id, weight, ends) SELECT r.run, r.id, r.host, r.weight, :now + :wait FROM :rows r
ON DUPLICATE KEY UPDATE ends = VALUES(ends)
