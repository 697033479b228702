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
-- suppressed, or one row with nulls for a user who has none.
SELECT u.tenant, u.user_id, u.locale, u.timezone, u.preferences, e.endpoint_id, e.kind, e.is_active, s.reason IS NOT NULL
FROM json_each(?) r
JOIN users u ON u.tenant = r.value ->> 0 AND u.user_id = r.value ->> 1
LEFT JOIN endpoints e ON e.tenant = u.tenant AND e.user_id = u.user_id
LEFT JOIN suppressions s ON s.tenant = e.tenant AND s.kind = e.kind AND s.blind = e.blind;

-- name: usage_of_slice
-- Per candidate on one channel: how much was counted in the last hour and day, and whether the same content stands
-- within the last five minutes in another batch. Parameters: candidates, hour ago, five minutes ago, day ago.
-- (Materialized: otherwise the JSON is taken apart again for every row of the inner loop, at twice the cost. CASE looks
-- no further where AND would: few rows have the same content.)
WITH asked AS MATERIALIZED (
    SELECT key AS place, value ->> 0 AS tenant, value ->> 1 AS channel, value ->> 2 AS content_hash,
        unhex(value ->> 3) AS batch, value ->> 4 AS user_id
    FROM json_each(?1)
)
SELECT a.place, sum(n.standing = 2 AND n.at > ?2), sum(n.standing = 2),
    min(CASE WHEN n.standing = 2 AND n.at > ?2 THEN n.at END), min(CASE WHEN n.standing = 2 THEN n.at END),
    max(CASE n.content_hash WHEN a.content_hash THEN n.at > ?3 AND substr(n.notification_id, 1, 13) <> a.batch ELSE 0 END)
FROM asked a
CROSS JOIN notifications n
WHERE n.tenant = a.tenant AND n.user_id = a.user_id AND n.at > ?4 AND n.standing > 0 AND n.channel = a.channel
GROUP BY a.place;

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
