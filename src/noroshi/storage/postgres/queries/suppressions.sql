-- name: hear_reach
-- Keeps a provider's word on an address if it is newer than the last one, or as new and worse.
INSERT INTO reachability (tenant, kind, blind, is_reachable, at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, kind, blind) DO UPDATE SET is_reachable = excluded.is_reachable, at = excluded.at
WHERE excluded.at > reachability.at
    OR (excluded.at = reachability.at AND reachability.is_reachable AND NOT excluded.is_reachable);

-- name: suppress
-- An address must not be used; the first reason stays.
INSERT INTO suppressions (tenant, kind, blind, reason, at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, kind, blind) DO NOTHING;

-- name: lift_suppression
-- An address may be used again, if this was the reason.
DELETE FROM suppressions WHERE tenant = $1 AND kind = $2 AND blind = $3 AND reason = $4;

-- name: set_endpoints_active
-- Switches every endpoint with an address on or off.
UPDATE endpoints SET is_active = $4 WHERE tenant = $1 AND kind = $2 AND blind = $3;
