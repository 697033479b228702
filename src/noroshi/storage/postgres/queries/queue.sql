-- name: ready_deliveries
-- Deliveries of a lane that are due, oldest first; another process skips those we have.
SELECT tenant, notification_id, endpoint_id, claims, tries, user_id, category, template_row, expires_at, wanted_at
FROM deliveries WHERE lane = $1 AND state = 0 AND due_at <= $2 ORDER BY due_at LIMIT $3
FOR UPDATE SKIP LOCKED;

-- name: claim_delivery
-- Leases deliveries: due_at becomes the end of the lease, and the claim is counted.
UPDATE deliveries d SET state = 1, due_at = r.until, fence = r.fence, claims = d.claims + 1
FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bytea[], $5::bigint[])
    AS r(until, fence, tenant, notification_id, endpoint_id)
WHERE d.tenant = r.tenant AND d.notification_id = r.notification_id AND d.endpoint_id = r.endpoint_id;

-- name: ready_innocents
-- As ready_deliveries, without those that had been claimed that often without an outcome.
SELECT tenant, notification_id, endpoint_id, claims, tries, user_id, category, template_row, expires_at, wanted_at
FROM deliveries WHERE lane = $1 AND state = 0 AND due_at <= $2 AND claims < $3 ORDER BY due_at LIMIT $4
FOR UPDATE SKIP LOCKED;

-- name: held_suspect
-- Whether some delivery is under a lease that had been claimed that often without an outcome. Whoever asks waits until
-- others who asked have committed: of two suspects in two processes one is claimed, and the other waits.
SELECT held_suspect($1, $2);

-- name: set_delivery_aside
-- A pause of their category keeps deliveries out of the lane.
UPDATE deliveries d SET state = 2
FROM unnest($1::integer[], $2::bytea[], $3::bigint[]) AS r(tenant, notification_id, endpoint_id)
WHERE d.tenant = r.tenant AND d.notification_id = r.notification_id AND d.endpoint_id = r.endpoint_id;

-- name: next_due_delivery
-- When the lane's next ready delivery falls due.
SELECT due_at FROM deliveries WHERE lane = $1 AND state = 0 AND due_at > $2 ORDER BY due_at LIMIT 1;

-- name: people_of_claims
-- The person and the endpoint of each claimed delivery; the columns are null where they are gone.
SELECT (r.place - 1)::integer, u.data_key, u.name, u.locale, u.timezone, u.attributes, e.kind, e.sealed
FROM unnest($1::integer[], $2::text[], $3::bigint[]) WITH ORDINALITY AS r(tenant, user_id, endpoint_id, place)
LEFT JOIN users u ON u.tenant = r.tenant AND u.user_id = r.user_id
LEFT JOIN endpoints e ON e.tenant = r.tenant AND e.user_id = r.user_id AND e.endpoint_id = r.endpoint_id;

-- name: bodies_of_batches
-- The data of these batches, and what is told of their attachments.
SELECT d.tenant, d.batch_id, d.data, d.attachments FROM unnest($1::integer[], $2::bytea[]) AS r(tenant, batch_id)
JOIN batch_bodies d ON d.tenant = r.tenant AND d.batch_id = r.batch_id;

-- name: template_by_row
-- One stored template version.
SELECT template_row, template_id, channel, locale, variant, version, subject, title, body, metadata, is_active,
    created_by, created_at
FROM templates WHERE tenant = $1 AND template_row = $2;

-- name: finish_delivery
-- Takes settled deliveries out of their lanes if the claims are still ours.
DELETE FROM deliveries d
USING unnest($1::integer[], $2::bytea[], $3::bigint[], $4::bigint[]) AS r(tenant, notification_id, endpoint_id, fence)
WHERE d.tenant = r.tenant AND d.notification_id = r.notification_id AND d.endpoint_id = r.endpoint_id
  AND d.fence = r.fence AND d.state = 1
RETURNING d.tenant, d.notification_id, d.endpoint_id, d.lane, d.user_id, d.category, d.template_row, d.expires_at,
    d.wanted_at, d.tries;

-- name: retry_delivery
-- Ready again later, one try used up, if the claims are still ours.
UPDATE deliveries d SET state = 0, due_at = r.due_at, tries = d.tries + 1, claims = 0
FROM unnest($1::integer[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS r(tenant, notification_id, endpoint_id, fence, due_at)
WHERE d.tenant = r.tenant AND d.notification_id = r.notification_id AND d.endpoint_id = r.endpoint_id
  AND d.fence = r.fence AND d.state = 1
RETURNING d.tenant, d.notification_id, d.endpoint_id;

-- name: release_delivery
-- Ready again, nothing used up, if the claims are still ours.
UPDATE deliveries d SET state = 0, due_at = r.due_at, claims = greatest(d.claims - 1, 0)
FROM unnest($1::integer[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS r(tenant, notification_id, endpoint_id, fence, due_at)
WHERE d.tenant = r.tenant AND d.notification_id = r.notification_id AND d.endpoint_id = r.endpoint_id
  AND d.fence = r.fence AND d.state = 1
RETURNING d.tenant, d.notification_id, d.endpoint_id;

-- name: resend_delivery
-- Ready again after claims whose outcome nobody knows: the claims stay counted.
UPDATE deliveries d SET state = 0, due_at = r.due_at
FROM unnest($1::integer[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS r(tenant, notification_id, endpoint_id, fence, due_at)
WHERE d.tenant = r.tenant AND d.notification_id = r.notification_id AND d.endpoint_id = r.endpoint_id
  AND d.fence = r.fence AND d.state = 1
RETURNING d.tenant, d.notification_id, d.endpoint_id;

-- name: notification_sent
-- SENT at the first success; a later one of another device changes nothing.
UPDATE notifications n SET status = 60, reason = NULL, sent_at = r.at, tries = n.tries + 1
FROM (
    SELECT tenant, notification_id, min(at) AS at
    FROM unnest($1::bigint[], $2::integer[], $3::bytea[]) AS r(at, tenant, notification_id)
    GROUP BY tenant, notification_id
) r
WHERE n.tenant = r.tenant AND n.notification_id = r.notification_id AND n.status < 60;

-- name: notification_retrying
-- RETRYING, unless another endpoint has succeeded.
UPDATE notifications n SET status = 50, tries = n.tries + r.count
FROM (
    SELECT tenant, notification_id, count(*)::integer AS count
    FROM unnest($1::integer[], $2::bytea[]) AS r(tenant, notification_id)
    GROUP BY tenant, notification_id
) r
WHERE n.tenant = r.tenant AND n.notification_id = r.notification_id AND n.status < 60;

-- name: notification_ended
-- The end without success, once no delivery is left; what is given up before a send gives its quota back. A dead letter
-- of one device outweighs how the others ended: a person may still replay it.
SELECT end_notifications($1, $2, $3, $4, $5, $6);

-- name: put_message_id
-- How receipts will find their notifications.
INSERT INTO message_ids (tenant, account, message_id, notification_id, endpoint_id)
SELECT * FROM unnest($1::integer[], $2::text[], $3::text[], $4::bytea[], $5::bigint[])
ON CONFLICT DO NOTHING;

-- name: deactivate_endpoint
-- The provider says the endpoints are gone.
UPDATE endpoints e SET is_active = false
FROM unnest($1::integer[], $2::text[], $3::bigint[]) AS r(tenant, user_id, endpoint_id)
WHERE e.tenant = r.tenant AND e.user_id = r.user_id AND e.endpoint_id = r.endpoint_id;

-- name: raise_alert
-- One row an alert: its count rises.
INSERT INTO alerts AS a (tenant, kind, subject, severity, since, last_at, count)
SELECT r.tenant, r.kind, r.subject, max(r.severity), max(r.at), max(r.at), count(*)
FROM unnest($1::integer[], $2::text[], $3::text[], $4::text[], $5::bigint[]) AS r(tenant, kind, subject, severity, at)
GROUP BY r.tenant, r.kind, r.subject
ORDER BY r.tenant, r.kind, r.subject
ON CONFLICT (tenant, kind, subject) DO UPDATE SET last_at = excluded.last_at, count = a.count + excluded.count;

-- name: renew_lease
-- Lengthens leases that are still ours.
UPDATE deliveries d SET due_at = r.until
FROM unnest($1::bigint[], $2::integer[], $3::bytea[], $4::bigint[], $5::bigint[])
    AS r(until, tenant, notification_id, endpoint_id, fence)
WHERE d.tenant = r.tenant AND d.notification_id = r.notification_id AND d.endpoint_id = r.endpoint_id
  AND d.fence = r.fence AND d.state = 1
RETURNING d.tenant, d.notification_id, d.endpoint_id;

-- name: expired_leases
-- A page of leases that ended before a time, in the order of (end, key), after a place.
SELECT due_at, tenant, notification_id, endpoint_id, lane, fence, claims, tries, category, expires_at, wanted_at
FROM deliveries
WHERE state = 1 AND due_at <= $1 AND (due_at, tenant, notification_id, endpoint_id) > ($2, $3, $4, $5)
ORDER BY due_at, tenant, notification_id, endpoint_id LIMIT $6;

-- name: waiting_lanes
-- Every lane with ready deliveries and the earliest due time, found by jumping from lane to lane.
WITH RECURSIVE lanes (lane) AS (
    (SELECT lane FROM deliveries WHERE state = 0 ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT d.lane FROM deliveries d WHERE d.state = 0 AND d.lane > lanes.lane ORDER BY d.lane LIMIT 1)
    FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT lane, (SELECT min(d.due_at) FROM deliveries d WHERE d.lane = lanes.lane AND d.state = 0) AS due
FROM lanes WHERE lane IS NOT NULL;

-- name: leased_lanes
-- Every lane with claimed deliveries, and since when the oldest of them has been due: since it was wanted or, after an
-- earlier try, since it was claimed. A fence is a number in the order of time.
SELECT lane, min(CASE tries WHEN 0 THEN wanted_at ELSE fence END)
FROM deliveries WHERE state = 1 GROUP BY lane;

-- name: aside_deliveries
-- A page of deliveries set aside whose category is no longer paused.
SELECT tenant, notification_id, endpoint_id FROM deliveries
WHERE state = 2 AND category NOT IN (SELECT jsonb_array_elements_text($1::text::jsonb)) LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: put_delivery_back
-- Back into their lanes.
UPDATE deliveries d SET state = 0
FROM unnest($1::integer[], $2::bytea[], $3::bigint[]) AS r(tenant, notification_id, endpoint_id)
WHERE d.tenant = r.tenant AND d.notification_id = r.notification_id AND d.endpoint_id = r.endpoint_id AND d.state = 2;

-- name: count_unfinished
-- How many deliveries are not settled for good.
SELECT count(*) FROM deliveries;
