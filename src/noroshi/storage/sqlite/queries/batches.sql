-- name: hold_idempotency_key
-- Takes a key, in the commit that keeps its batch; an expired holder gives way.
INSERT INTO idempotency_keys (tenant, idempotency_key, fingerprint, batch_id, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (tenant, idempotency_key) DO UPDATE
SET fingerprint = excluded.fingerprint, batch_id = excluded.batch_id, expires_at = excluded.expires_at
WHERE expires_at <= ?6;

-- name: find_idempotency_keys
-- Who holds these keys.
SELECT k.tenant, k.idempotency_key, k.fingerprint, k.batch_id
FROM json_each(?) r
JOIN idempotency_keys k ON k.tenant = r.value ->> 0 AND k.idempotency_key = r.value ->> 1;

-- name: forget_idempotency_keys
-- Removes keys that nobody may rely on any more, a page at a time.
DELETE FROM idempotency_keys WHERE (tenant, idempotency_key) IN (
    SELECT tenant, idempotency_key FROM idempotency_keys WHERE expires_at <= ? LIMIT ?
);

-- name: insert_batch
-- Keeps a batch with what was decided of it in the same commit.
INSERT INTO batches (
    tenant, batch_id, template_id, channels, priority, category, content_hash, created_at, due_at, expires_at,
    digest_key, created_by, is_scheduled, total, recipients, next_recipient, accepted, rejected, reasons, state
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_batch_body
-- Keeps a batch's data and recipients, once.
INSERT INTO batch_bodies (tenant, batch_id, data, user_ids, attachments) VALUES (?, ?, ?, ?, ?);

-- name: insert_attachment
-- Keeps the content of an attachment, once for its batch.
INSERT INTO attachments (tenant, batch_id, position, content) VALUES (?, ?, ?, ?);

-- name: attachments_of_batch
-- The contents of a batch's attachments, in order.
SELECT content FROM attachments WHERE tenant = ? AND batch_id = ? ORDER BY position;

-- name: insert_rejections
-- Records recipients that get nothing, with the reason.
INSERT INTO rejections (tenant, batch_id, position, user_id, code) VALUES (?, ?, ?, ?, ?);

-- name: open_batches
-- Batches with recipients left to decide that are due, oldest first.
SELECT tenant, batch_id, template_id, channels, priority, category, content_hash, created_at, due_at, expires_at,
    digest_key, created_by, is_scheduled, total, recipients, next_recipient, accepted, rejected, reasons
FROM batches WHERE state = 0 AND due_at <= ? ORDER BY due_at LIMIT ?;

-- name: count_open_batches
-- How many of them there are, up to a number.
SELECT count(*) FROM (SELECT 1 FROM batches WHERE state = 0 AND due_at <= ? LIMIT ?);

-- name: body_recipients
-- The recipients of one batch.
SELECT user_ids FROM batch_bodies WHERE tenant = ? AND batch_id = ?;

-- name: advance_batch
-- Moves a batch's cursor past a slice, in the commit that writes the slice.
UPDATE batches SET next_recipient = ?, accepted = ?, rejected = ?, reasons = ?, state = ?
WHERE tenant = ? AND batch_id = ? AND state = 0;

-- name: next_due
-- When the next waiting batch or hold falls due; null if nothing waits.
SELECT min(due_at) FROM (
    SELECT * FROM (SELECT due_at FROM batches WHERE state = 0 ORDER BY due_at LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT due_at FROM holds ORDER BY due_at LIMIT 1)
);

-- name: find_batch
-- One batch with its data, for the API.
SELECT b.tenant, b.batch_id, b.template_id, b.channels, b.priority, b.category, b.content_hash, b.created_at, b.due_at,
    b.expires_at, b.digest_key, b.created_by, b.is_scheduled, b.total, b.recipients, b.next_recipient, b.accepted,
    b.rejected, b.reasons, b.cancelled_at, d.data, d.answer, d.attachments
FROM batches b JOIN batch_bodies d ON d.tenant = b.tenant AND d.batch_id = b.batch_id
WHERE b.tenant = ? AND b.batch_id = ?;

-- name: count_statuses
-- Notifications of a batch by channel and status; one that is being sent is known by its leased delivery.
SELECT n.channel,
    CASE WHEN n.status IN (30, 50) AND EXISTS (
        SELECT 1 FROM deliveries d WHERE d.tenant = n.tenant AND d.notification_id = n.notification_id AND d.state = 1
    ) THEN 40 ELSE n.status END AS shown,
    count(*)
FROM notifications n WHERE n.tenant = ? AND n.notification_id BETWEEN ? AND ? GROUP BY n.channel, shown;

-- name: batch_progress_columns
-- What the status of a batch needs beside its notifications.
SELECT channels, recipients, next_recipient, state, cancelled_at FROM batches WHERE tenant = ? AND batch_id = ?;

-- name: list_rejections
-- Recipients of a batch that get nothing, in order.
SELECT position, user_id, code FROM rejections WHERE tenant = ? AND batch_id = ? AND position > ?
ORDER BY position LIMIT ?;

-- name: remember_answer
-- Keeps the first answer; a later one changes nothing.
UPDATE batch_bodies SET answer = ? WHERE tenant = ? AND batch_id = ? AND answer IS NULL;

-- name: begin_cancel
-- Marks a batch withdrawn: from here on nothing of it is decided or tried again.
UPDATE batches SET state = 2, cancelled_at = ? WHERE tenant = ? AND batch_id = ? AND state IN (0, 1);

-- name: cancelling_batches
-- Batches that still have notifications to withdraw.
SELECT tenant, batch_id FROM batches WHERE state = 2 ORDER BY due_at LIMIT ?;

-- name: end_cancel
-- Nothing of the batch is left to withdraw.
UPDATE batches SET state = 3 WHERE tenant = ? AND batch_id = ?;

-- name: unsent_deliveries
-- A page of a batch's deliveries that nobody is sending at this moment.
SELECT tenant, notification_id, endpoint_id FROM deliveries
WHERE tenant = ? AND notification_id BETWEEN ? AND ? AND state <> 1 LIMIT ?;

-- name: held_notifications
-- A page of a batch's holds.
SELECT tenant, notification_id FROM holds WHERE tenant = ? AND notification_id BETWEEN ? AND ? LIMIT ?;

-- name: remove_delivery
-- Takes a delivery out of its lane unless somebody holds it.
DELETE FROM deliveries WHERE tenant = ? AND notification_id = ? AND endpoint_id = ? AND state <> 1;

-- name: remove_hold
-- Ends a hold.
DELETE FROM holds WHERE tenant = ? AND notification_id = ?;

-- name: withdraw_notification
-- CANCELLED once no delivery of it is left (unless a dead letter of it waits); it gives its quota back. Nothing
-- terminal is touched.
UPDATE notifications SET status = CASE WHEN dead.code IS NULL THEN 90 ELSE 70 END, reason = dead.code,
    standing = CASE WHEN dead.code IS NULL THEN 0 ELSE standing END
FROM (SELECT (
    SELECT code FROM dead_letters WHERE tenant = ?1 AND notification_id = ?2 ORDER BY dead_letter_id DESC LIMIT 1
) AS code) AS dead
WHERE tenant = ?1 AND notification_id = ?2 AND status < 60
  AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.tenant = ?1 AND d.notification_id = ?2)
RETURNING tenant, notification_id;

-- name: are_cancelled
-- Which of these batches have been withdrawn.
SELECT b.tenant, b.batch_id FROM json_each(?) r
JOIN batches b ON b.tenant = r.value ->> 0 AND b.batch_id = unhex(r.value ->> 1) WHERE b.state >= 2;

-- name: hold_batches
-- Whether these batches have been withdrawn; nobody withdraws the others before our commit.
SELECT b.tenant, b.batch_id, b.state >= 2 FROM json_each(?) r
JOIN batches b ON b.tenant = r.value ->> 0 AND b.batch_id = unhex(r.value ->> 1);
