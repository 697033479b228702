-- name: due_holds
-- Holds that end now, with the batch that says what they are.
SELECT h.tenant, h.notification_id, n.user_id
FROM holds h JOIN notifications n ON n.tenant = h.tenant AND n.notification_id = h.notification_id
WHERE h.due_at <= ? ORDER BY h.due_at LIMIT ?;

-- name: heads_of_batches
-- What the notifications of these batches share; withdrawn batches are left out, and nobody withdraws the others before
-- our commit.
SELECT b.tenant, b.batch_id, b.template_id, b.channels, b.priority, b.category, b.content_hash, b.created_at, b.due_at,
    b.expires_at, b.digest_key, b.created_by
FROM json_each(?) r JOIN batches b ON b.tenant = r.value ->> 0 AND b.batch_id = unhex(r.value ->> 1)
WHERE b.state < 2;

-- name: people_of_slice
-- What addressing must know of the users of a slice: a row for each endpoint (without its address) and whether it is
-- suppressed, or one row with nulls for a user who has none. Parameters: users, how many stand before them, tenant.
SELECT u.tenant, u.user_id, u.locale, u.timezone, u.preferences, e.endpoint_id, e.kind, e.is_active, s.reason IS NOT NULL
FROM json_each(?1) r
CROSS JOIN users u ON u.tenant = ?3 AND u.user_id = r.value
LEFT JOIN endpoints e ON e.tenant = u.tenant AND e.user_id = u.user_id
LEFT JOIN suppressions s ON s.tenant = e.tenant AND s.kind = e.kind AND s.blind = e.blind;

-- name: usage_of_slice
-- Per user on one channel who has had anything there: how much was counted in the last hour and day, and which of these
-- contents stand there within the last five minutes, each with its batch. Parameters: users, how many stand before them,
-- tenant, channel, hour ago, five minutes ago, day ago, contents.
-- (By rowid: json_each gives its rows in that order, so nothing is sorted.)
SELECT ?2 + r.key, sum(n.standing = 2 AND n.at > ?5), sum(n.standing = 2),
    min(CASE WHEN n.standing = 2 AND n.at > ?5 THEN n.at END), min(CASE WHEN n.standing = 2 THEN n.at END),
    group_concat(CASE WHEN n.at > ?6 AND n.content_hash IN (SELECT value FROM json_each(?8))
        THEN n.content_hash || ' ' || lower(hex(substr(n.notification_id, 1, 13))) END)
FROM json_each(?1) r
CROSS JOIN notifications n
WHERE n.tenant = ?3 AND n.user_id = r.value AND n.at > ?7 AND n.standing > 0 AND n.channel = ?4
GROUP BY r.rowid;

-- name: templates_of_slice
-- The newest active version of each template by channel, locale and variant.
SELECT t.tenant, t.template_id, t.channel, t.locale, t.variant, t.template_row, max(t.version)
FROM json_each(?) r
JOIN templates t ON t.tenant = r.value ->> 0 AND t.template_id = r.value ->> 1
WHERE t.is_active = 1
GROUP BY t.tenant, t.template_id, t.channel, t.locale, t.variant;

-- name: insert_notification
-- Writes a notification decided for the first time.
INSERT INTO notifications (
    tenant, notification_id, user_id, channel, status, reason, at, content_hash, standing, template_row
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_notification
-- Writes a notification that was held: what is decided now replaces what was decided before.
INSERT INTO notifications (
    tenant, notification_id, user_id, channel, status, reason, at, content_hash, standing, template_row
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, notification_id) DO UPDATE SET status = excluded.status, reason = excluded.reason,
    at = excluded.at, standing = excluded.standing, template_row = excluded.template_row
WHERE notifications.status = 20;

-- name: put_delivery
-- Puts a delivery into its lane.
INSERT INTO deliveries (
    tenant, notification_id, endpoint_id, lane, due_at, user_id, category, template_row, expires_at, wanted_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_hold
-- Lets a notification wait.
INSERT INTO holds (tenant, notification_id, due_at, reason) VALUES (?, ?, ?, ?);

-- name: put_ledger
-- Records a decision or an outcome.
INSERT INTO ledger (tenant, notification_id, at, kind, detail, seq) VALUES (?, ?, ?, ?, ?, ?);

-- name: put_dead_letter
-- Records what ended without success, with what a replay needs.
INSERT INTO dead_letters (
    tenant, notification_id, endpoint_id, lane, user_id, category, template_row, expires_at, wanted_at, code, error,
    tries, at, dead_letter_id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
