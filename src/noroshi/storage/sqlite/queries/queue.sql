-- name: ready_deliveries
-- Deliveries of a lane that are due, oldest first.
SELECT tenant, notification_id, endpoint_id, claims, tries, user_id, category, template_row, expires_at, wanted_at
FROM deliveries WHERE lane = ? AND state = 0 AND due_at <= ? ORDER BY due_at LIMIT ?;

-- name: claim_delivery
-- Leases a delivery: due_at becomes the end of the lease, and the claim is counted.
UPDATE deliveries SET state = 1, due_at = ?, fence = ?, claims = claims + 1
WHERE tenant = ? AND notification_id = ? AND endpoint_id = ?;

-- name: ready_innocents
-- As ready_deliveries, without those that had been claimed that often without an outcome.
SELECT tenant, notification_id, endpoint_id, claims, tries, user_id, category, template_row, expires_at, wanted_at
FROM deliveries WHERE lane = ? AND state = 0 AND due_at <= ? AND claims < ? ORDER BY due_at LIMIT ?;

-- name: held_suspect
-- Whether some delivery is under a lease that had been claimed that often without an outcome.
SELECT 1 FROM deliveries WHERE state = 1 AND due_at > ? AND claims > ? LIMIT 1;

-- name: set_delivery_aside
-- A pause of its category keeps the delivery out of the lane.
UPDATE deliveries SET state = 2 WHERE tenant = ? AND notification_id = ? AND endpoint_id = ?;

-- name: next_due_delivery
-- When the lane's next ready delivery falls due.
SELECT due_at FROM deliveries WHERE lane = ? AND state = 0 AND due_at > ? ORDER BY due_at LIMIT 1;

-- name: people_of_claims
-- The person and the endpoint of each claimed delivery; the columns are null where they are gone.
SELECT r.key, u.data_key, u.name, u.locale, u.timezone, u.attributes, e.kind, e.sealed
FROM json_each(?) r
LEFT JOIN users u ON u.tenant = r.value ->> 0 AND u.user_id = r.value ->> 1
LEFT JOIN endpoints e ON e.tenant = r.value ->> 0 AND e.user_id = r.value ->> 1 AND e.endpoint_id = r.value ->> 2;

-- name: bodies_of_batches
-- The data of these batches, and what is told of their attachments.
SELECT d.tenant, d.batch_id, d.data, d.attachments FROM json_each(?) r
JOIN batch_bodies d ON d.tenant = r.value ->> 0 AND d.batch_id = unhex(r.value ->> 1);

-- name: template_by_row
-- One stored template version.
SELECT template_row, template_id, channel, locale, variant, version, subject, title, body, metadata, is_active,
    created_by, created_at
FROM templates WHERE tenant = ? AND template_row = ?;

-- name: finish_delivery
-- Takes a settled delivery out of its lane if the claim is still ours.
DELETE FROM deliveries WHERE tenant = ? AND notification_id = ? AND endpoint_id = ? AND fence = ? AND state = 1
RETURNING tenant, notification_id, endpoint_id, lane, user_id, category, template_row, expires_at, wanted_at, tries;

-- name: retry_delivery
-- Ready again later, one try used up, if the claim is still ours.
UPDATE deliveries SET state = 0, due_at = ?5, tries = tries + 1, claims = 0
WHERE tenant = ?1 AND notification_id = ?2 AND endpoint_id = ?3 AND fence = ?4 AND state = 1
RETURNING tenant, notification_id, endpoint_id;

-- name: release_delivery
-- Ready again, nothing used up, if the claim is still ours.
UPDATE deliveries SET state = 0, due_at = ?5, claims = max(claims - 1, 0)
WHERE tenant = ?1 AND notification_id = ?2 AND endpoint_id = ?3 AND fence = ?4 AND state = 1
RETURNING tenant, notification_id, endpoint_id;

-- name: resend_delivery
-- Ready again after a claim whose outcome nobody knows: its claims stay counted.
UPDATE deliveries SET state = 0, due_at = ?5
WHERE tenant = ?1 AND notification_id = ?2 AND endpoint_id = ?3 AND fence = ?4 AND state = 1
RETURNING tenant, notification_id, endpoint_id;

-- name: notification_sent
-- SENT at the first success; a later one of another device changes nothing.
UPDATE notifications SET status = 60, reason = NULL, sent_at = ?, tries = tries + 1
WHERE tenant = ? AND notification_id = ? AND status < 60;

-- name: notification_retrying
-- RETRYING, unless another endpoint has succeeded.
UPDATE notifications SET status = 50, tries = tries + 1 WHERE tenant = ? AND notification_id = ? AND status < 60;

-- name: notification_ended
-- The end without success, once no delivery is left; what is given up before a send gives its quota back. A dead letter
-- of one device outweighs how the others ended: a person may still replay it.
UPDATE notifications SET status = CASE WHEN dead.code IS NULL THEN ?3 ELSE 70 END, reason = coalesce(dead.code, ?4),
    tries = tries + ?5, standing = CASE WHEN ?6 AND dead.code IS NULL THEN 0 ELSE standing END
FROM (SELECT (
    SELECT code FROM dead_letters WHERE tenant = ?1 AND notification_id = ?2 ORDER BY dead_letter_id DESC LIMIT 1
) AS code) AS dead
WHERE tenant = ?1 AND notification_id = ?2 AND status < 60
  AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.tenant = ?1 AND d.notification_id = ?2);

-- name: put_message_id
-- How a receipt will find its notification.
INSERT INTO message_ids (tenant, account, message_id, notification_id, endpoint_id) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: deactivate_endpoint
-- The provider says the endpoint is gone.
UPDATE endpoints SET is_active = 0 WHERE tenant = ? AND user_id = ? AND endpoint_id = ?;

-- name: raise_alert
-- One row an alert: its count rises.
INSERT INTO alerts (tenant, kind, subject, severity, since, last_at, count) VALUES (?1, ?2, ?3, ?4, ?5, ?5, 1)
ON CONFLICT (tenant, kind, subject) DO UPDATE SET last_at = excluded.last_at, count = count + 1;

-- name: renew_lease
-- Lengthens a lease that is still ours.
UPDATE deliveries SET due_at = ?
WHERE tenant = ? AND notification_id = ? AND endpoint_id = ? AND fence = ? AND state = 1
RETURNING tenant, notification_id, endpoint_id;

-- name: expired_leases
-- A page of leases that ended before a time, in the order of (end, key), after a place.
SELECT due_at, tenant, notification_id, endpoint_id, lane, fence, claims, tries, category, expires_at, wanted_at
FROM deliveries
WHERE state = 1 AND due_at <= ?1 AND (due_at, tenant, notification_id, endpoint_id) > (?2, ?3, ?4, ?5)
ORDER BY due_at, tenant, notification_id, endpoint_id LIMIT ?6;

-- name: waiting_lanes
-- Every lane with ready deliveries and the earliest due time, found by jumping from lane to lane.
WITH RECURSIVE lanes (lane) AS (
    SELECT (SELECT min(lane) FROM deliveries)
    UNION ALL
    SELECT (SELECT min(d.lane) FROM deliveries d WHERE d.lane > lanes.lane) FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT lane, (SELECT min(due_at) FROM deliveries d WHERE d.lane = lanes.lane AND d.state = 0) AS due
FROM lanes WHERE lane IS NOT NULL AND due IS NOT NULL;

-- name: leased_lanes
-- Every lane with claimed deliveries, and since when the oldest of them has been due: since it was wanted or, after an
-- earlier try, since it was claimed. A fence is a number in the order of time.
SELECT lane, min(CASE tries WHEN 0 THEN wanted_at ELSE fence END)
FROM deliveries INDEXED BY deliveries_leased WHERE state = 1 GROUP BY lane;

-- name: aside_deliveries
-- A page of deliveries set aside whose category is no longer paused.
SELECT tenant, notification_id, endpoint_id FROM deliveries
WHERE state = 2 AND category NOT IN (SELECT value FROM json_each(?)) LIMIT ?;

-- name: put_delivery_back
-- Back into its lane.
UPDATE deliveries SET state = 0 WHERE tenant = ? AND notification_id = ? AND endpoint_id = ? AND state = 2;

-- name: count_unfinished
-- How many deliveries are not settled for good.
SELECT count(*) FROM deliveries;
