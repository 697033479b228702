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

-- name: lock_people
-- Locks people in order until the commit: limits and duplicates are decided for one person by one process at a time.
-- How many locks were asked for, and how many there are.
WITH asked AS MATERIALIZED (
    SELECT DISTINCT noroshi_person(g.tenant, r.user_id) AS person
    FROM unnest($1::integer[], $2::text[], $3::integer[]) AS g(tenant, user_ids, before)
    CROSS JOIN unnest(string_to_array(g.user_ids, E'\x1f')) AS r(user_id)
), locked AS (
    SELECT l.person FROM asked a JOIN person_locks l ON l.person = a.person
    ORDER BY l.person FOR NO KEY UPDATE OF l
)
SELECT (SELECT count(*) FROM asked), (SELECT count(*) FROM locked);

-- name: put_person_locks
-- Makes the locks of these people that are missing.
INSERT INTO person_locks
SELECT DISTINCT noroshi_person(g.tenant, r.user_id) AS person
FROM unnest($1::integer[], $2::text[], $3::integer[]) AS g(tenant, user_ids, before)
CROSS JOIN unnest(string_to_array(g.user_ids, E'\x1f')) AS r(user_id)
ORDER BY person
ON CONFLICT DO NOTHING;

-- name: people_of_slice
-- What addressing must know of the users of a slice: a row for each endpoint (without its address) and whether it is
-- suppressed, or one row with nulls for a user who has none.
SELECT u.tenant, u.user_id, u.locale, u.timezone, u.preferences, e.endpoint_id, e.kind, e.is_active,
    s.reason IS NOT NULL
FROM unnest($1::integer[], $2::text[], $3::integer[]) AS g(tenant, user_ids, before)
CROSS JOIN unnest(string_to_array(g.user_ids, E'\x1f')) AS r(user_id)
JOIN users u ON u.tenant = g.tenant AND u.user_id = r.user_id
LEFT JOIN endpoints e ON e.tenant = u.tenant AND e.user_id = u.user_id
LEFT JOIN suppressions s ON s.tenant = e.tenant AND s.kind = e.kind AND s.blind = e.blind;

-- name: usage_of_slice
-- Per user on one channel who has had anything there: how much was counted in the last hour and day, and which of these
-- contents stand there within the last five minutes, each with its batch. Parameters: users, hour ago, five minutes ago,
-- day ago, contents. Days before the day before yesterday are looked into only if something was decided there of late,
-- tomorrow only in the last hour before it: the clocks of others may be ahead.
SELECT (a.before + r.place - 1)::integer, u.*
FROM unnest($1::integer[], $2::text[], $3::text[], $4::integer[]) AS a(tenant, channel, user_ids, before)
CROSS JOIN unnest(string_to_array(a.user_ids, E'\x1f')) WITH ORDINALITY AS r(user_id, place)
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE n.standing = 2 AND n.at > $5) AS in_hour,
        count(*) FILTER (WHERE n.standing = 2) AS in_day,
        min(n.at) FILTER (WHERE n.standing = 2 AND n.at > $5) AS oldest_in_hour,
        min(n.at) FILTER (WHERE n.standing = 2) AS oldest_in_day,
        string_agg(n.content_hash || ' ' || encode(substring(n.notification_id FROM 1 FOR 13), 'hex'), ',')
            FILTER (WHERE n.at > $6 AND n.content_hash = ANY ($8::bigint[])) AS alike
    FROM notifications n
    WHERE n.tenant = a.tenant AND n.user_id = r.user_id AND n.channel = a.channel AND n.at > $7::bigint
        AND n.standing > 0
        AND n.notification_id >= (
            SELECT noroshi_first_id(least(($7::bigint / 86400000000 - 1)::integer, min(day)))
            FROM late_days WHERE last_at > $7::bigint - 3600000000
        )
        AND n.notification_id < (SELECT noroshi_first_id((($7::bigint + 90000000000) / 86400000000 + 1)::integer))
) u
WHERE u.in_day > 0 OR u.alike IS NOT NULL;

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
