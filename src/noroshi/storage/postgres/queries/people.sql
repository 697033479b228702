-- name: put_user
-- Creates or replaces a user; preferences and data key stay.
WITH lock AS (
    INSERT INTO person_locks VALUES (noroshi_person($1, $2)) ON CONFLICT DO NOTHING
)
INSERT INTO users (tenant, user_id, data_key, name, locale, timezone, is_zone_confirmed, attributes, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
ON CONFLICT (tenant, user_id) DO UPDATE SET name = excluded.name, locale = excluded.locale,
    timezone = excluded.timezone, is_zone_confirmed = excluded.is_zone_confirmed, attributes = excluded.attributes,
    updated_at = excluded.updated_at;

-- name: get_user
-- One user.
SELECT user_id, data_key, name, locale, timezone, is_zone_confirmed, attributes, preferences, created_at, updated_at
FROM users WHERE tenant = $1 AND user_id = $2;

-- name: list_users
-- Users in the order of their ids, with the kinds of their active endpoints. Parameters: tenant, first, last, the one
-- before, limit.
SELECT u.user_id, u.name, u.locale, u.timezone, (
    SELECT string_agg(e.kind, ',') FROM endpoints e WHERE e.tenant = u.tenant AND e.user_id = u.user_id AND e.is_active
), u.created_at, u.updated_at
FROM users u WHERE u.tenant = $1 AND u.user_id >= $2 AND u.user_id <= $3 AND u.user_id <> $4
ORDER BY u.user_id LIMIT $5;

-- name: remove_user
-- Forgets a user; what was sealed with the data key can never be opened again.
DELETE FROM users WHERE tenant = $1 AND user_id = $2;

-- name: remove_user_endpoints
-- Forgets a user's endpoints.
DELETE FROM endpoints WHERE tenant = $1 AND user_id = $2;

-- name: put_endpoint
-- Sets an endpoint's address; a new address is active again.
INSERT INTO endpoints (
    tenant, user_id, endpoint_id, kind, blind, sealed, is_active, platform, app_version, created_at, last_used_at
) VALUES ($1, $2, $3, $4, $5, $6, true, $7, $8, $9, $9)
ON CONFLICT (tenant, user_id, endpoint_id) DO UPDATE SET
    is_active = CASE WHEN endpoints.blind = excluded.blind AND $10::boolean THEN endpoints.is_active ELSE true END,
    blind = excluded.blind, sealed = excluded.sealed, app_version = excluded.app_version,
    last_used_at = excluded.last_used_at;

-- name: remove_endpoint
-- Forgets one endpoint.
DELETE FROM endpoints WHERE tenant = $1 AND user_id = $2 AND endpoint_id = $3;

-- name: endpoints_of_user
-- A user's endpoints.
SELECT endpoint_id, kind, sealed, is_active, platform, app_version, created_at, last_used_at, blind
FROM endpoints WHERE tenant = $1 AND user_id = $2 ORDER BY endpoint_id;

-- name: put_preferences
-- Replaces a user's wishes.
UPDATE users SET preferences = $3, locale = coalesce($4, locale), timezone = coalesce($5, timezone), updated_at = $6
WHERE tenant = $1 AND user_id = $2;

-- name: usage_of_user
-- What was counted for a user in the last hour and day, by channel. Parameters: tenant, user, hour ago, day ago.
SELECT channel, count(*) FILTER (WHERE at > $3), count(*), min(at) FILTER (WHERE at > $3), min(at)
FROM notifications WHERE tenant = $1 AND user_id = $2 AND at > $4 AND standing = 2 GROUP BY channel;

-- name: has_user
-- Whether the user is registered or was ever addressed.
SELECT EXISTS (SELECT 1 FROM users WHERE tenant = $1 AND user_id = $2)
    OR EXISTS (SELECT 1 FROM notifications WHERE tenant = $1 AND user_id = $2);
