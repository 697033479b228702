-- name: hold_idempotency_key
-- Takes keys, in the commit that keeps their batches; an expired holder gives way.
INSERT INTO idempotency_keys (tenant, idempotency_key, fingerprint, batch_id, expires_at)
SELECT r.tenant, r.idempotency_key, r.fingerprint, r.batch_id, r.expires_at
FROM unnest($1::integer[], $2::text[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[])
    AS r(tenant, idempotency_key, fingerprint, batch_id, expires_at, now)
ON CONFLICT (tenant, idempotency_key) DO UPDATE
SET fingerprint = excluded.fingerprint, batch_id = excluded.batch_id, expires_at = excluded.expires_at
WHERE idempotency_keys.expires_at <= noroshi_now();

-- name: find_idempotency_keys
-- Who holds these keys.
SELECT k.tenant, k.idempotency_key, k.fingerprint, k.batch_id
FROM unnest($1::integer[], $2::text[]) AS r(tenant, idempotency_key)
JOIN idempotency_keys k ON k.tenant = r.tenant AND k.idempotency_key = r.idempotency_key;

-- name: forget_idempotency_keys
-- Removes keys that nobody may rely on any more, a page at a time. (Picked first: a page within IN may be picked again
-- for every row.)
WITH page AS MATERIALIZED (
    SELECT tenant, idempotency_key FROM idempotency_keys WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM idempotency_keys k USING page p WHERE k.tenant = p.tenant AND k.idempotency_key = p.idempotency_key;

-- name: insert_batch
-- Keeps batches with what was decided of them in the same commit.
COPY batches (
    tenant, batch_id, template_id, channels, priority, category, content_hash, created_at, due_at, expires_at,
    digest_key, created_by, is_scheduled, total, recipients, next_recipient, accepted, rejected, reasons, state
) FROM STDIN;

-- name: insert_batch_body
-- Keeps the batches' data and recipients, once.
COPY batch_bodies (tenant, batch_id, data, user_ids, attachments) FROM STDIN;

-- name: insert_attachment
-- Keeps the contents of attachments, once for their batch.
COPY attachments (tenant, batch_id, position, content) FROM STDIN;

-- name: attachments_of_batch
-- The contents of a batch's attachments, in order.
SELECT content FROM attachments WHERE tenant = $1 AND batch_id = $2 ORDER BY position;

-- name: insert_rejections
-- Records recipients that get nothing, with the reason.
COPY rejections (tenant, batch_id, position, user_id, code) FROM STDIN;

-- name: open_batches
-- Batches with recipients left to decide that are due, oldest first; another process skips those we have.
SELECT tenant, batch_id, template_id, channels, priority, category, content_hash, created_at, due_at, expires_at,
    digest_key, created_by, is_scheduled, total, recipients, next_recipient, accepted, rejected, reasons
FROM batches WHERE state = 0 AND due_at <= $1 ORDER BY due_at LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: count_open_batches
-- How many of them there are, up to a number.
SELECT count(*) FROM (SELECT 1 FROM batches WHERE state = 0 AND due_at <= $1 LIMIT $2) AS due;

-- name: body_recipients
-- The recipients of one batch.
SELECT user_ids FROM batch_bodies WHERE tenant = $1 AND batch_id = $2;

-- name: advance_batch
-- Moves batches' cursors past a slice, in the commit that writes the slice; a batch of an earlier day is noted, for
-- limits must look there from now on.
WITH moved AS (
    UPDATE batches b SET next_recipient = r.next_recipient, accepted = r.accepted, rejected = r.rejected,
        reasons = r.reasons, state = r.state
    FROM unnest(
        $1::integer[], $2::integer[], $3::integer[], $4::text[], $5::smallint[], $6::integer[], $7::bytea[]
    ) AS r(next_recipient, accepted, rejected, reasons, state, tenant, batch_id)
    WHERE b.tenant = r.tenant AND b.batch_id = r.batch_id AND b.state = 0
    RETURNING b.batch_id
)
INSERT INTO late_days AS l (day, last_at)
SELECT DISTINCT noroshi_day(batch_id), noroshi_now() FROM moved
WHERE noroshi_day(batch_id) < noroshi_now() / 86400000000 - 1
ON CONFLICT (day) DO UPDATE SET last_at = excluded.last_at WHERE l.last_at < excluded.last_at - 1800000000;

-- name: next_due
-- When the next waiting batch or hold falls due; null if nothing waits.
SELECT min(due_at) FROM (
    (SELECT due_at FROM batches WHERE state = 0 ORDER BY due_at LIMIT 1)
    UNION ALL
    (SELECT due_at FROM holds ORDER BY due_at LIMIT 1)
) AS waiting;

-- name: find_batch
-- One batch with its data, for the API.
SELECT b.tenant, b.batch_id, b.template_id, b.channels, b.priority, b.category, b.content_hash, b.created_at, b.due_at,
    b.expires_at, b.digest_key, b.created_by, b.is_scheduled, b.total, b.recipients, b.next_recipient, b.accepted,
    b.rejected, b.reasons, b.cancelled_at, d.data, d.answer, d.attachments
FROM batches b JOIN batch_bodies d ON d.tenant = b.tenant AND d.batch_id = b.batch_id
WHERE b.tenant = $1 AND b.batch_id = $2;

-- name: count_statuses
-- Notifications of a batch by channel and status; one that is being sent is known by its leased delivery.
SELECT n.channel,
    CASE WHEN n.status IN (30, 50) AND EXISTS (
        SELECT 1 FROM deliveries d WHERE d.tenant = n.tenant AND d.notification_id = n.notification_id AND d.state = 1
    ) THEN 40 ELSE n.status END AS shown,
    count(*)
FROM notifications n WHERE n.tenant = $1 AND n.notification_id BETWEEN $2 AND $3 GROUP BY n.channel, shown;

-- name: batch_progress_columns
-- What the status of a batch needs beside its notifications.
SELECT channels, recipients, next_recipient, state, cancelled_at FROM batches WHERE tenant = $1 AND batch_id = $2;

-- name: list_rejections
-- Recipients of a batch that get nothing, in order.
SELECT position, user_id, code FROM rejections WHERE tenant = $1 AND batch_id = $2 AND position > $3
ORDER BY position LIMIT $4;

-- name: remember_answer
-- Keeps the first answer; a later one changes nothing.
UPDATE batch_bodies SET answer = $1 WHERE tenant = $2 AND batch_id = $3 AND answer IS NULL;

-- name: begin_cancel
-- Marks a batch withdrawn: from here on nothing of it is decided or tried again.
UPDATE batches SET state = 2, cancelled_at = $1 WHERE tenant = $2 AND batch_id = $3 AND state IN (0, 1);

-- name: cancelling_batches
-- Batches that still have notifications to withdraw.
SELECT tenant, batch_id FROM batches WHERE state = 2 ORDER BY due_at LIMIT $1;

-- name: end_cancel
-- Nothing of the batch is left to withdraw.
UPDATE batches SET state = 3 WHERE tenant = $1 AND batch_id = $2;

-- name: unsent_deliveries
-- A page of a batch's deliveries that nobody is sending at this moment.
SELECT tenant, notification_id, endpoint_id FROM deliveries
WHERE tenant = $1 AND notification_id BETWEEN $2 AND $3 AND state <> 1 LIMIT $4
FOR UPDATE SKIP LOCKED;

-- name: held_notifications
-- A page of a batch's holds.
SELECT tenant, notification_id FROM holds WHERE tenant = $1 AND notification_id BETWEEN $2 AND $3 LIMIT $4
FOR UPDATE SKIP LOCKED;

-- name: remove_delivery
-- Takes deliveries out of their lanes unless somebody holds them.
DELETE FROM deliveries d USING unnest($1::integer[], $2::bytea[], $3::bigint[]) AS r(tenant, notification_id, endpoint_id)
WHERE d.tenant = r.tenant AND d.notification_id = r.notification_id AND d.endpoint_id = r.endpoint_id AND d.state <> 1;

-- name: remove_hold
-- Ends holds; a batch of an earlier day is noted, for limits must look there from now on.
WITH ended AS (
    DELETE FROM holds h USING unnest($1::integer[], $2::bytea[]) AS r(tenant, notification_id)
    WHERE h.tenant = r.tenant AND h.notification_id = r.notification_id
    RETURNING h.notification_id
)
INSERT INTO late_days AS l (day, last_at)
SELECT DISTINCT noroshi_day(notification_id), noroshi_now() FROM ended
WHERE noroshi_day(notification_id) < noroshi_now() / 86400000000 - 1
ON CONFLICT (day) DO UPDATE SET last_at = excluded.last_at WHERE l.last_at < excluded.last_at - 1800000000;

-- name: withdraw_notification
-- CANCELLED once no delivery of it is left (unless a dead letter of it waits); it gives its quota back. Nothing
-- terminal is touched.
SELECT a.tenant, e.id
FROM (SELECT $1::integer[] AS tenants, $2::bytea[] AS ids) given
CROSS JOIN LATERAL end_notifications(
    tenants, ids, array_fill(90::smallint, ARRAY[cardinality(ids)]), array_fill(NULL::text, ARRAY[cardinality(ids)]),
    array_fill(false, ARRAY[cardinality(ids)]), array_fill(true, ARRAY[cardinality(ids)])
) AS e(id)
JOIN unnest(tenants, ids) AS a(tenant, id) ON a.id = e.id;

-- name: are_cancelled
-- Which of these batches have been withdrawn.
SELECT b.tenant, b.batch_id FROM unnest($1::integer[], $2::bytea[]) AS r(tenant, batch_id)
JOIN batches b ON b.tenant = r.tenant AND b.batch_id = r.batch_id WHERE b.state >= 2;

-- name: hold_batches
-- Whether these batches have been withdrawn; nobody withdraws the others before our commit.
SELECT b.tenant, b.batch_id, b.state >= 2 FROM unnest($1::integer[], $2::bytea[]) AS r(tenant, batch_id)
JOIN batches b ON b.tenant = r.tenant AND b.batch_id = r.batch_id
FOR SHARE OF b;
