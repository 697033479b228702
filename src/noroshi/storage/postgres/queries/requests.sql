-- name: oldest_waiting_request
-- When the oldest waiting request was enqueued; no row if nothing waits.
SELECT created_at FROM requests WHERE state = 0 ORDER BY created_at LIMIT 1;

-- name: waiting_requests
-- Some requests to take, oldest first, with the sizes of their bodies; another process skips those we have.
SELECT tenant, request_id, created_by, octet_length(body) FROM requests WHERE state = 0 ORDER BY created_at LIMIT $1
FOR UPDATE SKIP LOCKED;

-- name: request_bodies
-- What these requests ask for.
SELECT q.tenant, q.request_id, q.body FROM unnest($1::integer[], $2::bytea[]) AS r(tenant, request_id)
JOIN requests q ON q.tenant = r.tenant AND q.request_id = r.request_id;

-- name: channels_of_templates
-- The channels for which these templates have an active version.
SELECT DISTINCT t.tenant, t.template_id, t.channel FROM unnest($1::integer[], $2::text[]) AS r(tenant, template_id)
JOIN templates t ON t.tenant = r.tenant AND t.template_id = r.template_id
WHERE t.is_active ORDER BY t.channel;

-- name: end_request
-- Taken, and their bodies left to the batches, or dead with the reason; in the commit that keeps the batches.
UPDATE requests q SET state = r.state, batch_id = r.batch_id, code = r.code, error = r.error,
    body = CASE r.state WHEN 1 THEN ''::bytea ELSE q.body END
FROM unnest($1::smallint[], $2::bytea[], $3::text[], $4::text[], $5::integer[], $6::bytea[])
    AS r(state, batch_id, code, error, tenant, request_id)
WHERE q.tenant = r.tenant AND q.request_id = r.request_id;

-- name: list_requests
-- Enqueued requests, newest first.
SELECT request_id, state, idempotency_key, batch_id, code, error, created_at, created_by FROM requests
WHERE tenant = $1 AND request_id < $2 ORDER BY request_id DESC LIMIT $3;

-- name: list_requests_in_state
-- Enqueued requests in one state, newest first.
SELECT request_id, state, idempotency_key, batch_id, code, error, created_at, created_by FROM requests
WHERE tenant = $1 AND state = $2 AND request_id < $3 ORDER BY request_id DESC LIMIT $4;

-- name: find_request
-- One enqueued request.
SELECT request_id, state, idempotency_key, batch_id, code, error, created_at, created_by FROM requests
WHERE tenant = $1 AND request_id = $2;

-- name: retry_request
-- A dead request waits again.
UPDATE requests SET state = 0, code = NULL, error = NULL WHERE tenant = $1 AND request_id = $2 AND state = 2;

-- name: free_request_keys
-- Frees keys that nobody may rely on any more, a page at a time.
WITH page AS MATERIALIZED (
    SELECT tenant, request_id FROM requests
    WHERE idempotency_key IS NOT NULL AND state <> 0 AND created_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE requests r SET idempotency_key = NULL FROM page p WHERE r.tenant = p.tenant AND r.request_id = p.request_id;

-- name: forget_requests
-- Removes requests below an id that no longer wait, a page at a time: ids are in the order of time.
WITH page AS MATERIALIZED (
    SELECT tenant, request_id FROM requests
    WHERE tenant IN (SELECT tenant FROM tenants) AND request_id < $1 AND state <> 0 LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM requests r USING page p WHERE r.tenant = p.tenant AND r.request_id = p.request_id;
