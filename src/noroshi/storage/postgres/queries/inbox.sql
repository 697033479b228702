-- name: keys_of_people
-- The data keys of these people; who is gone is left out. Nobody can remove them before the commit.
SELECT u.tenant, u.user_id, u.data_key FROM unnest($1::integer[], $2::text[]) AS r(tenant, user_id)
JOIN users u ON u.tenant = r.tenant AND u.user_id = r.user_id
ORDER BY u.tenant, u.user_id FOR KEY SHARE OF u;

-- name: fill_inbox
-- Takes the next so many numbers of inboxes, unread. The rows are locked in order until the commit: another process that
-- fills the same inbox waits, and goes on from there. Parameters: tenant, user, how many.
INSERT INTO inboxes AS i (tenant, user_id, last_number, unread, changes)
SELECT r.tenant, r.user_id, r.count, r.count, 0
FROM unnest($1::integer[], $2::text[], $3::bigint[]) AS r(tenant, user_id, count)
ORDER BY r.tenant, r.user_id COLLATE "C"
ON CONFLICT (tenant, user_id) DO UPDATE SET
    last_number = i.last_number + excluded.last_number, unread = i.unread + excluded.unread
RETURNING i.tenant, i.user_id, i.last_number, i.unread, i.changes;

-- name: put_entry
-- Keeps entries under their numbers.
COPY inbox (tenant, user_id, number, notification_id, category, sealed, at) FROM STDIN;

-- name: notification_delivered
-- DELIVERED, by being kept in an inbox of ours.
UPDATE notifications n SET status = 61, reason = NULL, sent_at = r.at, tries = n.tries + 1
FROM unnest($1::bigint[], $2::integer[], $3::bytea[]) AS r(at, tenant, notification_id)
WHERE n.tenant = r.tenant AND n.notification_id = r.notification_id AND n.status < 60;

-- name: head_of_inbox
-- How the inbox of a user stands; nulls where nothing ever came into it.
SELECT i.last_number, i.unread, i.changes FROM users u
LEFT JOIN inboxes i ON i.tenant = u.tenant AND i.user_id = u.user_id
WHERE u.tenant = $1 AND u.user_id = $2;

-- name: heads_of_inboxes
-- The same of many users, with their data keys.
SELECT u.tenant, u.user_id, u.data_key, i.last_number, i.unread, i.changes
FROM unnest($1::integer[], $2::text[]) AS r(tenant, user_id)
JOIN users u ON u.tenant = r.tenant AND u.user_id = r.user_id
LEFT JOIN inboxes i ON i.tenant = u.tenant AND i.user_id = u.user_id;

-- name: page_of_inbox
-- A user's entries, newest first. Parameters: tenant, user, before, archived or not (null: both), only unread, limit.
SELECT u.data_key, e.number, e.notification_id, e.category, e.sealed, e.at, e.read_at, e.archived_at
FROM inbox e JOIN users u ON u.tenant = e.tenant AND u.user_id = e.user_id
WHERE e.tenant = $1 AND e.user_id = $2 AND e.number < $3
  AND ($4::boolean IS NULL OR (e.archived_at IS NOT NULL) = $4) AND (NOT $5::boolean OR e.read_at IS NULL)
ORDER BY e.number DESC LIMIT $6;

-- name: entries_after
-- A user's entries above a number, in order.
SELECT u.data_key, e.number, e.notification_id, e.category, e.sealed, e.at, e.read_at, e.archived_at
FROM inbox e JOIN users u ON u.tenant = e.tenant AND u.user_id = e.user_id
WHERE e.tenant = $1 AND e.user_id = $2 AND e.number > $3 ORDER BY e.number LIMIT $4;

-- name: entries_of_inboxes
-- The entries of many users, each above a number, in order.
SELECT e.tenant, e.user_id, e.number, e.notification_id, e.category, e.sealed, e.at, e.read_at, e.archived_at
FROM unnest($1::integer[], $2::text[], $3::bigint[]) WITH ORDINALITY AS r(tenant, user_id, number, place)
JOIN inbox e ON e.tenant = r.tenant AND e.user_id = r.user_id AND e.number > r.number
ORDER BY r.place, e.number;

-- name: hold_inbox
-- How an inbox stands, from now on until the commit.
SELECT last_number, unread, changes FROM inboxes WHERE tenant = $1 AND user_id = $2 FOR NO KEY UPDATE;

-- name: hold_inboxes
-- Several inboxes are ours until the commit; they are locked in order.
SELECT 1 FROM unnest($1::integer[], $2::text[]) AS r(tenant, user_id)
JOIN inboxes i ON i.tenant = r.tenant AND i.user_id = r.user_id
ORDER BY i.tenant, i.user_id FOR NO KEY UPDATE OF i;

-- name: find_entry
-- What became of one entry.
SELECT number, notification_id, read_at, archived_at FROM inbox WHERE tenant = $1 AND user_id = $2 AND number = $3;

-- name: unread_entries
-- A page of the entries that count as unread, up to a number.
SELECT number, notification_id, read_at, archived_at FROM inbox
WHERE tenant = $1 AND user_id = $2 AND number <= $3 AND read_at IS NULL AND archived_at IS NULL
ORDER BY number LIMIT $4;

-- name: read_entry
-- The person has read the entries.
UPDATE inbox e SET read_at = r.at
FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::bigint[]) AS r(at, tenant, user_id, number)
WHERE e.tenant = r.tenant AND e.user_id = r.user_id AND e.number = r.number;

-- name: archive_entry
-- The person has put the entries away.
UPDATE inbox e SET archived_at = r.at
FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::bigint[]) AS r(at, tenant, user_id, number)
WHERE e.tenant = r.tenant AND e.user_id = r.user_id AND e.number = r.number;

-- name: count_marked
-- So many entries no longer count as unread, and something was changed. Parameters: how many, tenant, user.
UPDATE inboxes i SET unread = i.unread - r.count, changes = i.changes + 1
FROM unnest($1::bigint[], $2::integer[], $3::text[]) AS r(count, tenant, user_id)
WHERE i.tenant = r.tenant AND i.user_id = r.user_id
RETURNING i.last_number, i.unread, i.changes;

-- name: notification_opened
-- OPENED, unless more than that is known.
UPDATE notifications n SET status = 62
FROM unnest($1::integer[], $2::bytea[]) AS r(tenant, notification_id)
WHERE n.tenant = r.tenant AND n.notification_id = r.notification_id AND n.status IN (60, 61)
RETURNING n.tenant, n.notification_id;

-- name: old_entries
-- A page of entries whose notifications are below an id: ids are in the order of time.
SELECT tenant, user_id, number FROM inbox
WHERE tenant IN (SELECT tenant FROM tenants) AND notification_id < $1 LIMIT $2;

-- name: forget_entry
-- Forgets entries; says which of them counted as unread.
DELETE FROM inbox e USING unnest($1::integer[], $2::text[], $3::bigint[]) AS r(tenant, user_id, number)
WHERE e.tenant = r.tenant AND e.user_id = r.user_id AND e.number = r.number
RETURNING e.tenant, e.user_id, e.read_at IS NULL AND e.archived_at IS NULL;

-- name: empty_inbox
-- Forgets all entries of a person.
DELETE FROM inbox WHERE tenant = $1 AND user_id = $2;

-- name: count_emptied
-- Nothing is in the inbox any more; its numbers go on.
UPDATE inboxes SET unread = 0, changes = changes + 1 WHERE tenant = $1 AND user_id = $2;

-- name: spend_ticket
-- The ticket has opened its stream. Parameters: tenant, ticket, when it expires.
INSERT INTO spent_tickets (tenant, ticket, expires_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING;

-- name: forget_tickets
-- Forgets some tickets that have expired: those open nothing anyway.
WITH page AS MATERIALIZED (
    SELECT tenant, ticket FROM spent_tickets WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM spent_tickets t USING page p WHERE t.tenant = p.tenant AND t.ticket = p.ticket;
