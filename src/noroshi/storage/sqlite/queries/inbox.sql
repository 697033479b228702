-- name: keys_of_people
-- The data keys of these people; who is gone is left out.
SELECT u.tenant, u.user_id, u.data_key FROM json_each(?) r
JOIN users u ON u.tenant = r.value ->> 0 AND u.user_id = r.value ->> 1;

-- name: fill_inbox
-- Takes the next so many numbers of an inbox, unread. Parameters: tenant, user, how many.
INSERT INTO inboxes (tenant, user_id, last_number, unread, changes) VALUES (?1, ?2, ?3, ?3, 0)
ON CONFLICT (tenant, user_id) DO UPDATE SET
    last_number = last_number + excluded.last_number, unread = unread + excluded.unread
RETURNING tenant, user_id, last_number, unread, changes;

-- name: put_entry
-- Keeps an entry under its number.
INSERT INTO inbox (tenant, user_id, number, notification_id, category, sealed, at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: notification_delivered
-- DELIVERED, by being kept in an inbox of ours.
UPDATE notifications SET status = 61, reason = NULL, sent_at = ?, tries = tries + 1
WHERE tenant = ? AND notification_id = ? AND status < 60;

-- name: head_of_inbox
-- How the inbox of a user stands; nulls where nothing ever came into it.
SELECT i.last_number, i.unread, i.changes FROM users u
LEFT JOIN inboxes i ON i.tenant = u.tenant AND i.user_id = u.user_id
WHERE u.tenant = ? AND u.user_id = ?;

-- name: heads_of_inboxes
-- The same of many users, with their data keys.
SELECT u.tenant, u.user_id, u.data_key, i.last_number, i.unread, i.changes FROM json_each(?) r
JOIN users u ON u.tenant = r.value ->> 0 AND u.user_id = r.value ->> 1
LEFT JOIN inboxes i ON i.tenant = u.tenant AND i.user_id = u.user_id;

-- name: page_of_inbox
-- A user's entries, newest first. Parameters: tenant, user, before, archived or not (null: both), only unread, limit.
SELECT u.data_key, e.number, e.notification_id, e.category, e.sealed, e.at, e.read_at, e.archived_at
FROM inbox e JOIN users u ON u.tenant = e.tenant AND u.user_id = e.user_id
WHERE e.tenant = ?1 AND e.user_id = ?2 AND e.number < ?3 AND (?4 IS NULL OR (e.archived_at IS NOT NULL) = ?4)
  AND (NOT ?5 OR e.read_at IS NULL)
ORDER BY e.number DESC LIMIT ?6;

-- name: entries_after
-- A user's entries above a number, in order.
SELECT u.data_key, e.number, e.notification_id, e.category, e.sealed, e.at, e.read_at, e.archived_at
FROM inbox e JOIN users u ON u.tenant = e.tenant AND u.user_id = e.user_id
WHERE e.tenant = ? AND e.user_id = ? AND e.number > ? ORDER BY e.number LIMIT ?;

-- name: entries_of_inboxes
-- The entries of many users, each above a number, in order.
SELECT e.tenant, e.user_id, e.number, e.notification_id, e.category, e.sealed, e.at, e.read_at, e.archived_at
FROM json_each(?) r
CROSS JOIN inbox e ON e.tenant = r.value ->> 0 AND e.user_id = r.value ->> 1 AND e.number > r.value ->> 2
ORDER BY r.key, e.number;

-- name: hold_inbox
-- How an inbox stands, from now on until the commit.
SELECT last_number, unread, changes FROM inboxes WHERE tenant = ? AND user_id = ?;

-- name: hold_inboxes
-- Several inboxes are ours until the commit.
SELECT 1 FROM json_each(?) r JOIN inboxes i ON i.tenant = r.value ->> 0 AND i.user_id = r.value ->> 1;

-- name: find_entry
-- What became of one entry.
SELECT number, notification_id, read_at, archived_at FROM inbox WHERE tenant = ? AND user_id = ? AND number = ?;

-- name: unread_entries
-- A page of the entries that count as unread, up to a number.
SELECT number, notification_id, read_at, archived_at FROM inbox
WHERE tenant = ? AND user_id = ? AND number <= ? AND read_at IS NULL AND archived_at IS NULL ORDER BY number LIMIT ?;

-- name: read_entry
-- The person has read the entry.
UPDATE inbox SET read_at = ?1 WHERE tenant = ?2 AND user_id = ?3 AND number = ?4;

-- name: archive_entry
-- The person has put the entry away.
UPDATE inbox SET archived_at = ?1 WHERE tenant = ?2 AND user_id = ?3 AND number = ?4;

-- name: count_marked
-- So many entries no longer count as unread, and something was changed. Parameters: how many, tenant, user.
UPDATE inboxes SET unread = unread - ?1, changes = changes + 1 WHERE tenant = ?2 AND user_id = ?3
RETURNING last_number, unread, changes;

-- name: notification_opened
-- OPENED, unless more than that is known.
UPDATE notifications SET status = 62 WHERE tenant = ? AND notification_id = ? AND status IN (60, 61)
RETURNING tenant, notification_id;

-- name: old_entries
-- A page of entries whose notifications are below an id: ids are in the order of time.
SELECT tenant, user_id, number FROM inbox
WHERE tenant IN (SELECT tenant FROM tenants) AND notification_id < ? LIMIT ?;

-- name: forget_entry
-- Forgets an entry; says whether it counted as unread.
DELETE FROM inbox WHERE tenant = ? AND user_id = ? AND number = ?
RETURNING tenant, user_id, read_at IS NULL AND archived_at IS NULL;

-- name: empty_inbox
-- Forgets all entries of a person.
DELETE FROM inbox WHERE tenant = ? AND user_id = ?;

-- name: count_emptied
-- Nothing is in the inbox any more; its numbers go on.
UPDATE inboxes SET unread = 0, changes = changes + 1 WHERE tenant = ? AND user_id = ?;

-- name: spend_ticket
-- The ticket has opened its stream. Parameters: tenant, ticket, when it expires.
INSERT INTO spent_tickets (tenant, ticket, expires_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: forget_tickets
-- Forgets some tickets that have expired: those open nothing anyway.
DELETE FROM spent_tickets WHERE (tenant, ticket) IN (
    SELECT tenant, ticket FROM spent_tickets WHERE expires_at < ? LIMIT ?
);
