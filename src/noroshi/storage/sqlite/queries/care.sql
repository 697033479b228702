-- name: read_marks
-- What the store says of itself.
SELECT name, value, at FROM marks WHERE tenant = 0;

-- name: put_mark
-- Says something of the store; the latest word stands.
INSERT INTO marks (tenant, name, value, at) VALUES (0, ?1, ?2, ?3)
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value, at = excluded.at;

-- name: remove_mark
-- Says it no more.
DELETE FROM marks WHERE tenant = 0 AND name = ?1;

-- name: remove_pauses_by
-- Ends the pauses that somebody has set.
DELETE FROM pauses WHERE created_by = ?1;

-- name: set_requests_aside
-- Requests that waited when a backup was taken wait for a person: they may have been taken and sent since.
UPDATE requests SET state = 2, code = ?1, error = 'it waited when the backup was taken, and may have been sent since'
WHERE state = 0;

-- name: fail_doubtful_jobs
-- Reservation jobs that were due before a restore wait for a person: they may have been sent since the backup was taken.
UPDATE notification_jobs SET status = 'FAILED', updated_at = ?1,
    last_error = 'outcome unknown: it was due before a backup was restored, and may have been sent since that was taken'
WHERE tenant IN (SELECT tenant FROM tenants) AND status = 'PENDING' AND scheduled_at <= ?1;

-- name: end_doubtful_attempts
-- Nobody will record their results any more.
UPDATE notification_job_attempts SET ended_at = ?1
WHERE tenant IN (SELECT tenant FROM tenants) AND ended_at IS NULL;

-- name: put_requests_back
-- Requests that were set aside wait again.
UPDATE requests SET state = 0, code = NULL, error = NULL
WHERE tenant IN (SELECT tenant FROM tenants) AND state = 2 AND code = ?1;

-- name: count_requests_aside
-- How many requests were set aside.
SELECT count(*) FROM requests WHERE tenant IN (SELECT tenant FROM tenants) AND state = 2 AND code = ?1;

-- name: count_requests
-- How many requests wait, and how many are dead.
SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 2) FROM requests
WHERE tenant IN (SELECT tenant FROM tenants) AND state IN (0, 2);

-- name: review_deliveries
-- Deliveries accepted before a backup: claimed without an outcome, due by then, due until it was restored, due later.
-- Parameters: first id after the backup, its time, time of the restore.
SELECT count(*) FILTER (WHERE claims > 0), count(*) FILTER (WHERE claims = 0 AND due_at <= ?2),
    count(*) FILTER (WHERE claims = 0 AND due_at > ?2 AND due_at <= ?3),
    count(*) FILTER (WHERE claims = 0 AND due_at > ?3)
FROM deliveries WHERE tenant IN (SELECT tenant FROM tenants) AND notification_id < ?1;

-- name: review_holds
-- The same of what is held: due by then, due until it was restored, due later.
SELECT count(*) FILTER (WHERE due_at <= ?2), count(*) FILTER (WHERE due_at > ?2 AND due_at <= ?3),
    count(*) FILTER (WHERE due_at > ?3)
FROM holds WHERE tenant IN (SELECT tenant FROM tenants) AND notification_id < ?1;

-- name: review_batches
-- The same of batches with recipients left to decide.
SELECT count(*) FILTER (WHERE due_at <= ?2), count(*) FILTER (WHERE due_at > ?2 AND due_at <= ?3),
    count(*) FILTER (WHERE due_at > ?3)
FROM batches WHERE tenant IN (SELECT tenant FROM tenants) AND batch_id < ?1 AND state = 0;

-- name: doubtful_deliveries
-- A page of deliveries that may have been sent after the backup. Parameters: first id after it, due before, limit.
SELECT tenant, notification_id, endpoint_id FROM deliveries
WHERE tenant IN (SELECT tenant FROM tenants) AND notification_id < ?1 AND (claims > 0 OR due_at <= ?2)
LIMIT ?3;

-- name: doubtful_holds
-- A page of holds that may have ended after the backup.
SELECT tenant, notification_id FROM holds
WHERE tenant IN (SELECT tenant FROM tenants) AND notification_id < ?1 AND due_at <= ?2
LIMIT ?3;

-- name: doubtful_batches
-- A page of batches that may have been decided after the backup.
SELECT tenant, batch_id FROM batches
WHERE tenant IN (SELECT tenant FROM tenants) AND batch_id < ?1 AND due_at <= ?2 AND state = 0
LIMIT ?3;

-- name: discard_delivery
-- Takes a delivery out of its lane, whoever held it.
DELETE FROM deliveries WHERE tenant = ? AND notification_id = ? AND endpoint_id = ?;

-- name: count_dead_letters
-- How many dead letters wait for a person.
SELECT count(*) FROM dead_letters WHERE tenant IN (SELECT tenant FROM tenants);

-- name: count_leases
-- How many deliveries are being sent, and how many of their leases have run out.
SELECT count(*), count(*) FILTER (WHERE due_at <= ?) FROM deliveries WHERE state = 1;
