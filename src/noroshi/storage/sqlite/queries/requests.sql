-- name: oldest_waiting_request
-- When the oldest waiting request was enqueued; no row if nothing waits.
SELECT created_at FROM requests WHERE state = 0 ORDER BY created_at LIMIT 1;

-- name: waiting_requests
-- Some requests to take, oldest first, with the sizes of their bodies.
SELECT tenant, request_id, created_by, length(body) FROM requests WHERE state = 0 ORDER BY created_at LIMIT ?;

-- name: request_bodies
-- What these requests ask for.
SELECT q.tenant, q.request_id, q.body FROM json_each(?) r
JOIN requests q ON q.tenant = r.value ->> 0 AND q.request_id = unhex(r.value ->> 1);

-- name: channels_of_templates
-- The channels for which these templates have an active version.
SELECT DISTINCT t.tenant, t.template_id, t.channel FROM json_each(?) r
JOIN templates t ON t.tenant = r.value ->> 0 AND t.template_id = r.value ->> 1
WHERE t.is_active = 1 ORDER BY t.channel;

-- name: end_request
-- Taken, and its body left to the batch, or dead with the reason; in the commit that keeps the batch.
UPDATE requests SET state = ?1, batch_id = ?2, code = ?3, error = ?4, body = CASE ?1 WHEN 1 THEN x'' ELSE body END
WHERE tenant = ?5 AND request_id = ?6;

-- name: list_requests
-- Enqueued requests, newest first.
SELECT request_id, state, idempotency_key, batch_id, code, error, created_at, created_by FROM requests
WHERE tenant = ? AND request_id < ? ORDER BY request_id DESC LIMIT ?;

-- name: list_requests_in_state
-- Enqueued requests in one state, newest first.
SELECT request_id, state, idempotency_key, batch_id, code, error, created_at, created_by FROM requests
WHERE tenant = ? AND state = ? AND request_id < ? ORDER BY request_id DESC LIMIT ?;

-- name: find_request
-- One enqueued request.
SELECT request_id, state, idempotency_key, batch_id, code, error, created_at, created_by FROM requests
WHERE tenant = ? AND request_id = ?;

-- name: retry_request
-- A dead request waits again.
UPDATE requests SET state = 0, code = NULL, error = NULL WHERE tenant = ? AND request_id = ? AND state = 2;

-- name: free_request_keys
-- Frees keys that nobody may rely on any more, a page at a time.
UPDATE requests SET idempotency_key = NULL WHERE (tenant, request_id) IN (
    SELECT tenant, request_id FROM requests
    WHERE idempotency_key IS NOT NULL AND state <> 0 AND created_at <= ? LIMIT ?
);

-- name: forget_requests
-- Removes requests below an id that no longer wait, a page at a time: ids are in the order of time.
DELETE FROM requests WHERE (tenant, request_id) IN (
    SELECT tenant, request_id FROM requests
    WHERE tenant IN (SELECT tenant FROM tenants) AND request_id < ? AND state <> 0 LIMIT ?
);
