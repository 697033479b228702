-- name: day_is_unfinished
-- Whether anything accepted between two ids may still change: something waits, or something is left to decide.
SELECT EXISTS (
    SELECT 1 FROM deliveries WHERE tenant IN (SELECT tenant FROM tenants)
        AND notification_id >= $1 AND notification_id < $2
) OR EXISTS (
    SELECT 1 FROM holds WHERE tenant IN (SELECT tenant FROM tenants)
        AND notification_id >= $1 AND notification_id < $2
) OR EXISTS (
    SELECT 1 FROM batches WHERE tenant IN (SELECT tenant FROM tenants)
        AND batch_id >= $1 AND batch_id < $2 AND state IN (0, 2)
);

-- name: count_day
-- The notifications between two ids, and how many of them are unfinished.
SELECT count(*), count(*) FILTER (WHERE status < 60) FROM notifications
WHERE notification_id >= $1 AND notification_id < $2;

-- name: forget_dead_letters_of_day
-- Removes a page of the dead letters between two ids.
WITH page AS MATERIALIZED (
    SELECT tenant, dead_letter_id FROM dead_letters
    WHERE tenant IN (SELECT tenant FROM tenants) AND notification_id >= $1 AND notification_id < $2 LIMIT $3
    FOR UPDATE
)
DELETE FROM dead_letters d USING page p WHERE d.tenant = p.tenant AND d.dead_letter_id = p.dead_letter_id;

-- name: forget_message_ids_of_day
-- Removes the message ids that a page of the ledger names; answers the last place of the page.
WITH page AS MATERIALIZED (
    SELECT tenant, notification_id, seq, kind, detail FROM ledger
    WHERE notification_id >= $1 AND notification_id < $2 AND (tenant, notification_id, seq) > ($3, $4, $5)
    ORDER BY tenant, notification_id, seq LIMIT $6
), gone AS (
    DELETE FROM message_ids m USING page p
    WHERE p.kind = 'sent' AND m.tenant = p.tenant AND m.account = p.detail::jsonb ->> 'account'
        AND m.message_id = p.detail::jsonb ->> 'message_id'
)
SELECT tenant, notification_id, seq FROM page ORDER BY tenant DESC, notification_id DESC, seq DESC LIMIT 1;

-- name: batches_of_day
-- A page of the decided batches between two ids.
SELECT tenant, batch_id FROM batches
WHERE tenant IN (SELECT tenant FROM tenants) AND batch_id >= $1 AND batch_id < $2 AND state IN (1, 3) LIMIT $3;

-- name: tables_of_days
-- Each table made for a day, and whether it is whole: joined to its parent, and not about to leave it.
SELECT c.relname, i.inhrelid IS NOT NULL AND NOT i.inhdetachpending
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    AND c.relname ~ '^(notifications|ledger)_[0-9]{8}$';
