-- name: notifications_of_batch
-- A batch's notifications in the order of their ids, with what is live of each.
SELECT n.tenant, n.notification_id, n.user_id, n.channel, n.status, n.reason, n.at, n.sent_at, n.tries,
    t.template_id, t.version, t.locale, h.due_at,
    (SELECT min(d.due_at) FROM deliveries d WHERE d.tenant = n.tenant AND d.notification_id = n.notification_id
        AND d.state <> 1),
    EXISTS (SELECT 1 FROM deliveries d WHERE d.tenant = n.tenant AND d.notification_id = n.notification_id
        AND d.state = 1)
FROM notifications n
LEFT JOIN templates t ON t.tenant = n.tenant AND t.template_row = n.template_row
LEFT JOIN holds h ON h.tenant = n.tenant AND h.notification_id = n.notification_id
WHERE n.tenant = $1 AND n.notification_id > $2 AND n.notification_id <= $3 ORDER BY n.notification_id LIMIT $4;

-- name: list_batches
-- Batches, newest first. Parameters: tenant, before, after, limit.
SELECT tenant, batch_id, template_id, channels, priority, category, content_hash, created_at, due_at, expires_at,
    digest_key, created_by, is_scheduled, total, recipients, next_recipient, accepted, rejected, reasons, cancelled_at,
    state
FROM batches WHERE tenant = $1 AND batch_id < $2 AND batch_id > $3 ORDER BY batch_id DESC LIMIT $4;

-- name: count_statuses_of_batches
-- Notifications of small batches by channel and status, as count_statuses does for one. Asked: tenant, first and last.
-- (The limit, which no such batch reaches, keeps the planner from joining by reading whole days.)
SELECT r.first_id AS batch, n.channel,
    CASE WHEN n.status IN (30, 50) AND EXISTS (
        SELECT 1 FROM deliveries d WHERE d.tenant = n.tenant AND d.notification_id = n.notification_id AND d.state = 1
    ) THEN 40 ELSE n.status END AS shown,
    count(*)
FROM unnest($1::integer[], $2::bytea[], $3::bytea[]) AS r(tenant, first_id, last_id)
CROSS JOIN LATERAL (
    SELECT * FROM notifications WHERE tenant = r.tenant AND notification_id BETWEEN r.first_id AND r.last_id
    ORDER BY notification_id LIMIT 1000
) n
GROUP BY batch, n.channel, shown;

-- name: notifications_of_user
-- A user's notifications, newest first, with what is live of each. Parameters: tenant, user, at, id, limit.
SELECT n.tenant, n.notification_id, n.user_id, n.channel, n.status, n.reason, n.at, n.sent_at, n.tries,
    t.template_id, t.version, t.locale, h.due_at,
    (SELECT min(d.due_at) FROM deliveries d WHERE d.tenant = n.tenant AND d.notification_id = n.notification_id
        AND d.state <> 1),
    EXISTS (SELECT 1 FROM deliveries d WHERE d.tenant = n.tenant AND d.notification_id = n.notification_id
        AND d.state = 1)
FROM notifications n
LEFT JOIN templates t ON t.tenant = n.tenant AND t.template_row = n.template_row
LEFT JOIN holds h ON h.tenant = n.tenant AND h.notification_id = n.notification_id
WHERE n.tenant = $1 AND n.user_id = $2 AND (n.at, n.notification_id) < ($3, $4)
ORDER BY n.at DESC, n.notification_id DESC LIMIT $5;

-- name: trails
-- The ledger of these notifications.
SELECT l.notification_id, l.at, l.kind, l.detail
FROM unnest($1::integer[], $2::bytea[]) AS r(tenant, notification_id)
JOIN ledger l ON l.tenant = r.tenant AND l.notification_id = r.notification_id
ORDER BY l.notification_id, l.seq;

-- name: list_dead_letters
-- Dead letters that match, newest first. Parameters: tenant, before, channel, code, category, user, first and last
-- notification, only this one, only those that have something to send, limit.
SELECT dead_letter_id, notification_id, endpoint_id, lane, user_id, category, template_row, expires_at, wanted_at,
    code, error, tries, at
FROM dead_letters
WHERE tenant = $1 AND dead_letter_id < $2
  AND ($3::text IS NULL OR starts_with(lane, $3 || '.')) AND ($4::text IS NULL OR code = $4)
  AND ($5::text IS NULL OR category = $5) AND ($6::text IS NULL OR user_id = $6)
  AND ($7::bytea IS NULL OR notification_id BETWEEN $7 AND $8) AND ($9::bigint IS NULL OR dead_letter_id = $9)
  AND (NOT $10::boolean OR template_row IS NOT NULL)
ORDER BY dead_letter_id DESC LIMIT $11;

-- name: remove_dead_letter
-- Takes dead letters away: they were replayed or discarded.
DELETE FROM dead_letters d USING unnest($1::integer[], $2::bigint[]) AS r(tenant, dead_letter_id)
WHERE d.tenant = r.tenant AND d.dead_letter_id = r.dead_letter_id;

-- name: requeue_notification
-- DEAD_LETTERED to QUEUED, by a person; SENT stays SENT when one device of many is replayed.
UPDATE notifications n SET status = 30, reason = NULL
FROM unnest($1::integer[], $2::bytea[]) AS r(tenant, notification_id)
WHERE n.tenant = r.tenant AND n.notification_id = r.notification_id AND n.status = 70;

-- name: add_pause
-- A second pause of the same thing is the first one.
INSERT INTO pauses (tenant, pause_id, kind, name, created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, kind, name) DO NOTHING;

-- name: find_pause
-- The pause of one thing.
SELECT pause_id, kind, name, created_at, created_by FROM pauses WHERE tenant = $1 AND kind = $2 AND name = $3;

-- name: list_pauses
-- A tenant's pauses in order.
SELECT pause_id, kind, name, created_at, created_by FROM pauses WHERE tenant = $1 AND pause_id > $2
ORDER BY pause_id LIMIT $3;

-- name: pauses_in_force
-- The pauses of every tenant.
SELECT pause_id, kind, name, created_at, created_by FROM pauses;

-- name: remove_pause
-- Resumes.
DELETE FROM pauses WHERE tenant = $1 AND pause_id = $2;

-- name: add_key
-- Keeps an API key without its secret.
INSERT INTO api_keys (tenant, key_id, name, scopes, digest, created_at, expires_at, per_minute)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: find_key
-- The key with this public id.
SELECT key_id, tenant, name, scopes, digest, created_at, expires_at, revoked_at, per_minute
FROM api_keys WHERE key_id = $1;

-- name: list_keys
-- A tenant's keys.
SELECT key_id, tenant, name, scopes, digest, created_at, expires_at, revoked_at, per_minute
FROM api_keys WHERE tenant = $1 ORDER BY created_at;

-- name: revoke_key
-- The key opens nothing any more.
UPDATE api_keys SET revoked_at = $1 WHERE tenant = $2 AND key_id = $3 AND revoked_at IS NULL;

-- name: put_caught
-- Keeps what the catcher got.
INSERT INTO caught (
    tenant, caught_id, channel, user_id, notification_id, address, subject, title, body, metadata, caught_at,
    attachments
)
SELECT r.tenant, nextval('numbers'), r.channel, r.user_id, r.notification_id, r.address, r.subject, r.title, r.body,
    r.metadata, r.caught_at, r.attachments
FROM unnest(
    $1::integer[], $2::bigint[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::bigint[], $12::bytea[]
) AS r(
    tenant, number, channel, user_id, notification_id, address, subject, title, body, metadata, caught_at, attachments
);

-- name: trim_caught
-- Keeps the latest ones only.
DELETE FROM caught c USING unnest($1::integer[], $2::integer[]) AS r(tenant, kept)
WHERE c.tenant = r.tenant AND c.caught_id <= (
    SELECT o.caught_id FROM caught o WHERE o.tenant = r.tenant ORDER BY o.caught_id DESC LIMIT 1 OFFSET r.kept
);

-- name: list_caught
-- What the catcher got, newest first. Parameters: tenant, before, channel, user, limit, after.
SELECT caught_id, channel, user_id, notification_id, address, subject, title, body, metadata, caught_at,
    attachments
FROM caught
WHERE tenant = $1 AND caught_id < $2 AND caught_id > $6
  AND ($3::text IS NULL OR channel = $3) AND ($4::text IS NULL OR user_id = $4)
ORDER BY caught_id DESC LIMIT $5;

-- name: list_alerts
-- Alerts, those raised last first. Parameters: tenant, last_at, kind, subject, limit.
SELECT kind, severity, subject, since, last_at, count FROM alerts
WHERE tenant = $1 AND (last_at, kind, subject) < ($2, $3, $4)
ORDER BY last_at DESC, kind DESC, subject DESC LIMIT $5;

-- name: old_notifications
-- A page of finished notifications below an id: ids are in the order of time. Parameters: id, limit.
SELECT tenant, notification_id FROM notifications
WHERE tenant IN (SELECT tenant FROM tenants) AND notification_id < $1 AND status >= 60 LIMIT $2;

-- name: forget_notification
-- Forgets notifications.
DELETE FROM notifications x USING unnest($1::integer[], $2::bytea[]) AS r(tenant, notification_id)
WHERE x.tenant = r.tenant AND x.notification_id = r.notification_id;

-- name: forget_message_id
-- Forgets how receipts would find notifications.
DELETE FROM message_ids m
USING unnest($1::integer[], $2::bytea[]) AS r(tenant, notification_id)
JOIN ledger l ON l.tenant = r.tenant AND l.notification_id = r.notification_id AND l.kind = 'sent'
WHERE m.tenant = l.tenant AND m.account = l.detail::jsonb ->> 'account'
  AND m.message_id = l.detail::jsonb ->> 'message_id';

-- name: forget_ledger
-- Forgets what happened to notifications.
DELETE FROM ledger x USING unnest($1::integer[], $2::bytea[]) AS r(tenant, notification_id)
WHERE x.tenant = r.tenant AND x.notification_id = r.notification_id;

-- name: forget_dead_letters
-- Forgets the dead letters of notifications.
DELETE FROM dead_letters x USING unnest($1::integer[], $2::bytea[]) AS r(tenant, notification_id)
WHERE x.tenant = r.tenant AND x.notification_id = r.notification_id;

-- name: old_batches
-- A page of decided batches below an id that have no notification left. Parameters: id, limit.
SELECT b.tenant, b.batch_id FROM batches b
WHERE b.tenant IN (SELECT tenant FROM tenants) AND b.batch_id < $1 AND b.state IN (1, 3) AND NOT EXISTS (
    SELECT 1 FROM notifications n WHERE n.tenant = b.tenant
        AND n.notification_id BETWEEN b.batch_id AND substring(b.batch_id FROM 1 FOR 13) || '\xffffff'::bytea
) LIMIT $2;

-- name: forget_batch
-- Forgets batches.
DELETE FROM batches x USING unnest($1::integer[], $2::bytea[]) AS r(tenant, batch_id)
WHERE x.tenant = r.tenant AND x.batch_id = r.batch_id;

-- name: forget_batch_body
-- Forgets batches' data and recipients.
DELETE FROM batch_bodies x USING unnest($1::integer[], $2::bytea[]) AS r(tenant, batch_id)
WHERE x.tenant = r.tenant AND x.batch_id = r.batch_id;

-- name: forget_attachments
-- Forgets the contents of the batches' attachments.
DELETE FROM attachments x USING unnest($1::integer[], $2::bytea[]) AS r(tenant, batch_id)
WHERE x.tenant = r.tenant AND x.batch_id = r.batch_id;

-- name: forget_rejections
-- Forgets whom batches rejected.
DELETE FROM rejections x USING unnest($1::integer[], $2::bytea[]) AS r(tenant, batch_id)
WHERE x.tenant = r.tenant AND x.batch_id = r.batch_id;
