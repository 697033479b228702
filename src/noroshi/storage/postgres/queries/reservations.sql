-- name: count_on
-- The last of so many new numbers of one kind.
INSERT INTO reservation_counters (tenant, name, last) VALUES ($1, $2, $3)
ON CONFLICT (tenant, name) DO UPDATE SET last = reservation_counters.last + $3
RETURNING last;

-- name: insert_farm
-- A new farm.
INSERT INTO farms (
    tenant, farm_id, name, pickup_place_name, pickup_map_url, pickup_detail_memo, label_5kg, label_10kg, label_25kg,
    reminder_policy, created_at, updated_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11);

-- name: replace_farm
-- A farm as it is from now on; texts that were rendered stay as they are.
UPDATE farms SET name = $3, pickup_place_name = $4, pickup_map_url = $5, pickup_detail_memo = $6, label_5kg = $7,
    label_10kg = $8, label_25kg = $9, reminder_policy = $10, updated_at = $11
WHERE tenant = $1 AND farm_id = $2;

-- name: find_farm
-- One farm.
SELECT farm_id, name, pickup_place_name, pickup_map_url, pickup_detail_memo, label_5kg, label_10kg, label_25kg,
    reminder_policy
FROM farms WHERE tenant = $1 AND farm_id = $2;

-- name: list_farms
-- Farms in the order of their ids.
SELECT farm_id, name, pickup_place_name, pickup_map_url, pickup_detail_memo, label_5kg, label_10kg, label_25kg,
    reminder_policy
FROM farms WHERE tenant = $1 AND farm_id > $2 ORDER BY farm_id LIMIT $3;

-- name: find_customer
-- One customer.
SELECT customer_id, name, data_key, line_user_id FROM customers WHERE tenant = $1 AND customer_id = $2;

-- name: put_customer
-- Creates or replaces a customer; the data key stays.
INSERT INTO customers (tenant, customer_id, data_key, name, line_user_id, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $6)
ON CONFLICT (tenant, customer_id) DO UPDATE
SET name = excluded.name, line_user_id = excluded.line_user_id, updated_at = excluded.updated_at;

-- name: insert_reservation
-- A new reservation, neither paid nor confirmed.
INSERT INTO reservations (
    tenant, reservation_id, farm_id, customer_id, status, payment_status, pickup_start, pickup_end, pickup_code, qty_5,
    qty_10, qty_25, subtotal_5, subtotal_10, subtotal_25, total, created_at, updated_at
) VALUES ($1, $2, $3, $4, 'pending', 'unpaid', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15);

-- name: find_booking
-- A reservation with its farm and its customer.
SELECT r.reservation_id, r.farm_id, r.customer_id, r.status, r.payment_status, r.pickup_start, r.pickup_end,
    r.pickup_code, r.qty_5, r.qty_10, r.qty_25, r.subtotal_5, r.subtotal_10, r.subtotal_25, r.total, r.reminder_policy,
    r.paid_amount, r.payment_reference, r.confirmed_at, r.cancelled_at, r.created_at, r.updated_at,
    f.farm_id, f.name, f.pickup_place_name, f.pickup_map_url, f.pickup_detail_memo, f.label_5kg, f.label_10kg,
    f.label_25kg, f.reminder_policy, c.customer_id, c.name, c.data_key, c.line_user_id
FROM reservations r
JOIN farms f ON f.tenant = r.tenant AND f.farm_id = r.farm_id
JOIN customers c ON c.tenant = r.tenant AND c.customer_id = r.customer_id
WHERE r.tenant = $1 AND r.reservation_id = $2;

-- name: hold_reservation
-- Whoever decides about a reservation is alone with it until the commit.
SELECT reservation_id FROM reservations WHERE tenant = $1 AND reservation_id = $2 FOR UPDATE;

-- name: list_bookings
-- Reservations with their farms and customers, newest first.
SELECT r.reservation_id, r.farm_id, r.customer_id, r.status, r.payment_status, r.pickup_start, r.pickup_end,
    r.pickup_code, r.qty_5, r.qty_10, r.qty_25, r.subtotal_5, r.subtotal_10, r.subtotal_25, r.total, r.reminder_policy,
    r.paid_amount, r.payment_reference, r.confirmed_at, r.cancelled_at, r.created_at, r.updated_at,
    f.farm_id, f.name, f.pickup_place_name, f.pickup_map_url, f.pickup_detail_memo, f.label_5kg, f.label_10kg,
    f.label_25kg, f.reminder_policy, c.customer_id, c.name, c.data_key, c.line_user_id
FROM reservations r
JOIN farms f ON f.tenant = r.tenant AND f.farm_id = r.farm_id
JOIN customers c ON c.tenant = r.tenant AND c.customer_id = r.customer_id
WHERE r.tenant = $1 AND r.reservation_id < $2 ORDER BY r.reservation_id DESC LIMIT $3;

-- name: jobs_of_reservations
-- The jobs of these reservations, in the order they were made.
SELECT j.job_id, j.reservation_id, j.farm_id, j.kind, j.scheduled_at, j.status, j.attempt_count, j.last_error,
    j.message_text, j.customer_line_user_id, j.created_at, j.updated_at
FROM unnest($1::integer[], $2::bigint[]) AS w(tenant, reservation_id)
JOIN notification_jobs j ON j.tenant = w.tenant AND j.reservation_id = w.reservation_id
ORDER BY j.job_id;

-- name: confirm_reservation
-- Paid and confirmed; the time of the first confirmation, and its policy, stay.
UPDATE reservations SET status = 'confirmed', payment_status = 'succeeded', paid_amount = $3, payment_reference = $4,
    reminder_policy = coalesce(reminder_policy, $5), confirmed_at = coalesce(confirmed_at, $6), updated_at = $6
WHERE tenant = $1 AND reservation_id = $2;

-- name: record_payment
-- Paid, and nothing else: it was cancelled before.
UPDATE reservations SET payment_status = 'succeeded', paid_amount = $3, payment_reference = $4, updated_at = $5
WHERE tenant = $1 AND reservation_id = $2;

-- name: record_short_payment
-- Less than the total came in: kept for people to see, and it pays for nothing.
UPDATE reservations SET paid_amount = $3, payment_reference = $4, updated_at = $5
WHERE tenant = $1 AND reservation_id = $2;

-- name: cancel_reservation
-- Cancelled.
UPDATE reservations SET status = 'cancelled', cancelled_at = $3, updated_at = $3
WHERE tenant = $1 AND reservation_id = $2;

-- name: insert_job
-- A pending job, to the customer's LINE user id of this moment; of each kind a reservation has one.
INSERT INTO notification_jobs (
    tenant, job_id, reservation_id, farm_id, customer_line_user_id, kind, scheduled_at, status, message_text,
    created_at, updated_at
)
SELECT r.tenant, $2::bigint, r.reservation_id, r.farm_id, c.line_user_id, $4::text, $5::text, 'PENDING', $6::text,
    $7::text, $7::text
FROM reservations r JOIN customers c ON c.tenant = r.tenant AND c.customer_id = r.customer_id
WHERE r.tenant = $1 AND r.reservation_id = $3
ON CONFLICT (tenant, reservation_id, kind) DO NOTHING;

-- name: delete_pending_reminder_jobs
-- The reminder of a reservation, unless it has a result or somebody is at it: then its result will be recorded.
DELETE FROM notification_jobs WHERE tenant = $1 AND reservation_id = $2 AND kind = 'REMINDER' AND status = 'PENDING'
    AND NOT EXISTS (
        SELECT 1 FROM notification_job_attempts a
        WHERE a.tenant = notification_jobs.tenant AND a.job_id = notification_jobs.job_id AND a.ended_at IS NULL
    );

-- name: count_due_jobs
-- How many jobs are pending and due.
SELECT count(*) FROM notification_jobs WHERE tenant = $1 AND status = 'PENDING' AND scheduled_at <= $2;

-- name: list_due_jobs
-- Jobs that are pending and due, oldest first; before them those of one reservation, after them what was tried too often.
-- Parameters: tenant, now, that reservation, how often is too often, limit.
SELECT j.job_id, j.reservation_id, j.farm_id, j.kind, j.scheduled_at, j.status, j.attempt_count, j.last_error,
    j.message_text, j.customer_line_user_id, j.created_at, j.updated_at, r.pickup_end, r.status,
    (SELECT min(a.started_at) FROM notification_job_attempts a
        WHERE a.tenant = j.tenant AND a.job_id = j.job_id AND a.ended_at IS NULL)
FROM notification_jobs j
JOIN reservations r ON r.tenant = j.tenant AND r.reservation_id = j.reservation_id
WHERE j.tenant = $1 AND j.status = 'PENDING' AND j.scheduled_at <= $2
ORDER BY coalesce(j.reservation_id = $3::bigint, false) DESC, j.attempt_count >= $4, j.scheduled_at, j.job_id LIMIT $5;

-- name: reservation_of_job
-- Whose job it is.
SELECT reservation_id FROM notification_jobs WHERE tenant = $1 AND job_id = $2;

-- name: find_job
-- A job and what decides about it, with the key of its customer and how often it was begun.
SELECT j.job_id, j.reservation_id, j.farm_id, j.kind, j.scheduled_at, j.status, j.attempt_count, j.last_error,
    j.message_text, j.customer_line_user_id, j.created_at, j.updated_at, r.pickup_end, r.status,
    (SELECT min(a.started_at) FROM notification_job_attempts a
        WHERE a.tenant = j.tenant AND a.job_id = j.job_id AND a.ended_at IS NULL),
    (SELECT coalesce(max(a.attempt), 0) FROM notification_job_attempts a
        WHERE a.tenant = j.tenant AND a.job_id = j.job_id),
    c.customer_id, c.data_key, c.line_user_id
FROM notification_jobs j
JOIN reservations r ON r.tenant = j.tenant AND r.reservation_id = j.reservation_id
JOIN customers c ON c.tenant = r.tenant AND c.customer_id = r.customer_id
WHERE j.tenant = $1 AND j.job_id = $2;

-- name: begin_attempt
-- LINE is about to be called.
INSERT INTO notification_job_attempts (tenant, job_id, attempt, started_at) VALUES ($1, $2, $3, $4);

-- name: end_attempts
-- An answer to the key of a job is the answer to every attempt with it.
UPDATE notification_job_attempts SET ended_at = $3 WHERE tenant = $1 AND job_id = $2 AND ended_at IS NULL;

-- name: end_attempt
-- A result that came too late to be the job's own.
UPDATE notification_job_attempts SET ended_at = $4
WHERE tenant = $1 AND job_id = $2 AND attempt = $3 AND ended_at IS NULL;

-- name: write_job
-- What became of a job, or that it is pending again. Parameters: tenant, job, status, attempts, error, LINE user id, now.
UPDATE notification_jobs SET status = $3, attempt_count = $4, last_error = $5, customer_line_user_id = $6,
    updated_at = $7
WHERE tenant = $1 AND job_id = $2;

-- name: is_line_paused
-- Whether an operator has stopped LINE, or everything.
SELECT count(*) FROM pauses WHERE kind = 'everything' OR (kind = 'channel' AND name = 'line');

-- name: take_lease
-- The lease is the holder's until then, if it was before or is nobody's; far further ahead than anybody writes, it is that of
-- a clock that jumped. A little ahead it may well be: whoever waited for the row has an older now than the one who wrote it.
-- Parameters: tenant, holder, until, now, further than this is not believed.
INSERT INTO notification_senders (tenant, holder, until) VALUES ($1, $2, $3)
ON CONFLICT (tenant) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE notification_senders.holder = excluded.holder OR notification_senders.until <= $4
    OR notification_senders.until > $5;

-- name: renew_sender_lease
-- The lease lasts on, if it is still the holder's.
UPDATE notification_senders SET until = $3 WHERE tenant = $1 AND holder = $2;

-- name: release_lease
-- Another may send.
DELETE FROM notification_senders WHERE tenant = $1 AND holder = $2;
