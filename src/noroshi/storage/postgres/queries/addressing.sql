-- name: due_holds
-- Holds that end now, with the batch that says what they are; another process skips those we have.
SELECT h.tenant, h.notification_id, n.user_id
FROM (
    SELECT tenant, notification_id, due_at FROM holds WHERE due_at <= $1 ORDER BY due_at LIMIT $2
    FOR UPDATE SKIP LOCKED
) h
JOIN notifications n ON n.tenant = h.tenant AND n.notification_id = h.notification_id
ORDER BY h.due_at;

-- name: heads_of_batches
-- What the notifications of these batches share; withdrawn batches are left out, and nobody withdraws the others before
-- our commit.
SELECT b.tenant, b.batch_id, b.template_id, b.channels, b.priority, b.category, b.content_hash, b.created_at, b.due_at,
    b.expires_at, b.digest_key, b.created_by
FROM unnest($1::integer[], $2::bytea[]) AS r(tenant, batch_id)
JOIN batches b ON b.tenant = r.tenant AND b.batch_id = r.batch_id
WHERE b.state < 2
FOR SHARE OF b SKIP LOCKED;

-- name: people_of_slice
-- What addressing must know of the users of a slice: a row for each endpoint (without its address) and whether it is
-- suppressed, or one row with nulls for a user who has none. The users are locked in order until the commit: limits
-- and duplicates are decided for one person by one process at a time.
WITH locked AS (
    SELECT u.tenant, u.user_id, u.locale, u.timezone, u.preferences
    FROM unnest($1::integer[], $2::text[]) AS r(tenant, user_id)
    JOIN users u ON u.tenant = r.tenant AND u.user_id = r.user_id
    ORDER BY u.tenant, u.user_id FOR NO KEY UPDATE OF u
)
SELECT u.tenant, u.user_id, u.locale, u.timezone, u.preferences, e.endpoint_id, e.kind, e.is_active,
    s.reason IS NOT NULL
FROM locked u
LEFT JOIN endpoints e ON e.tenant = u.tenant AND e.user_id = u.user_id
LEFT JOIN suppressions s ON s.tenant = e.tenant AND s.kind = e.kind AND s.blind = e.blind;

-- name: usage_of_slice
-- Per candidate and channel: how much was counted in the last hour and day, and whether the same content stands
-- within the last five minutes in another batch. Parameters: candidates, hour ago, five minutes ago, day ago. Days
-- before the day before yesterday are looked into only if something was decided there of late, those after tomorrow
-- never.
SELECT (a.place - 1)::integer, u.channel, u.in_hour, u.in_day, u.oldest_in_hour, u.oldest_in_day, u.is_duplicate
FROM unnest($1::integer[], $2::text[], $3::bigint[], $4::bytea[])
    WITH ORDINALITY AS a(tenant, user_id, content_hash, batch, place)
CROSS JOIN LATERAL (
    SELECT n.channel,
        count(*) FILTER (WHERE n.standing = 2 AND n.at > $5) AS in_hour,
        count(*) FILTER (WHERE n.standing = 2) AS in_day,
        min(n.at) FILTER (WHERE n.standing = 2 AND n.at > $5) AS oldest_in_hour,
        min(n.at) FILTER (WHERE n.standing = 2) AS oldest_in_day,
        bool_or(
            n.content_hash = a.content_hash AND n.at > $6 AND substring(n.notification_id FROM 1 FOR 13) <> a.batch
        ) AS is_duplicate
    FROM notifications n
    WHERE n.tenant = a.tenant AND n.user_id = a.user_id AND n.at > $7::bigint AND n.standing > 0
        AND n.notification_id >= (
            SELECT noroshi_first_id(least(($7::bigint / 86400000000 - 1)::integer, min(day)))
            FROM late_days WHERE last_at > $7::bigint - 3600000000
        )
        AND n.notification_id < (SELECT noroshi_first_id(($7::bigint / 86400000000 + 3)::integer))
    GROUP BY n.channel
) u;

-- name: templates_of_slice
-- The newest active version of each template by channel, locale and variant.
SELECT DISTINCT ON (t.tenant, t.template_id, t.channel, t.locale, t.variant)
    t.tenant, t.template_id, t.channel, t.locale, t.variant, t.template_row, t.version
FROM unnest($1::integer[], $2::text[]) AS r(tenant, template_id)
JOIN templates t ON t.tenant = r.tenant AND t.template_id = r.template_id
WHERE t.is_active
ORDER BY t.tenant, t.template_id, t.channel, t.locale, t.variant, t.version DESC;

-- name: insert_notification
-- Writes notifications decided for the first time.
COPY notifications (
    tenant, notification_id, user_id, channel, status, reason, at, content_hash, standing, template_row
) FROM STDIN;

-- name: put_notification
-- Writes notifications that were held: what is decided now replaces what was decided before.
INSERT INTO notifications (
    tenant, notification_id, user_id, channel, status, reason, at, content_hash, standing, template_row
)
SELECT * FROM unnest(
    $1::integer[], $2::bytea[], $3::text[], $4::text[], $5::smallint[], $6::text[], $7::bigint[], $8::bigint[],
    $9::smallint[], $10::bigint[]
)
ON CONFLICT (tenant, notification_id) DO UPDATE SET status = excluded.status, reason = excluded.reason,
    at = excluded.at, standing = excluded.standing, template_row = excluded.template_row
WHERE notifications.status = 20;

-- name: put_delivery
-- Puts deliveries into their lanes.
COPY deliveries (
    tenant, notification_id, endpoint_id, lane, due_at, user_id, category, template_row, expires_at, wanted_at
) FROM STDIN;

-- name: put_hold
-- Lets notifications wait.
COPY holds (tenant, notification_id, due_at, reason) FROM STDIN;

-- name: put_ledger
-- Records decisions and outcomes.
COPY ledger (tenant, notification_id, at, kind, detail, seq) FROM STDIN;

-- name: put_dead_letter
-- Records what ended without success, with what a replay needs. (The number given is one process's own: not used.)
INSERT INTO dead_letters (
    tenant, notification_id, endpoint_id, lane, user_id, category, template_row, expires_at, wanted_at, code, error,
    tries, at, dead_letter_id
)
SELECT r.tenant, r.notification_id, r.endpoint_id, r.lane, r.user_id, r.category, r.template_row, r.expires_at,
    r.wanted_at, r.code, r.error, r.tries, r.at, nextval('numbers')
FROM unnest(
    $1::integer[], $2::bytea[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::text[], $11::text[], $12::integer[], $13::bigint[], $14::bigint[]
) AS r(
    tenant, notification_id, endpoint_id, lane, user_id, category, template_row, expires_at, wanted_at, code, error,
    tries, at, number
);
