-- Reservations and what customers are told about them (L1, L16). Every time in these tables is text of one form, in UTC,
-- so that text compares as time does: YYYY-MM-DDTHH:MM:SS.ffffff+00:00.

CREATE DOMAIN noroshi.utc_text AS text COLLATE "C"
    CHECK (VALUE ~ '^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d{6}\+00:00$');

-- The last number given to each kind of thing.
CREATE TABLE reservation_counters (
    tenant integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (tenant, name)
) WITH (fillfactor = 50);

CREATE TABLE farms (
    tenant integer NOT NULL,
    farm_id bigint NOT NULL,
    name text NOT NULL,
    pickup_place_name text,
    pickup_map_url text,
    pickup_detail_memo text,
    label_5kg text NOT NULL,
    label_10kg text NOT NULL,
    label_25kg text NOT NULL,
    reminder_policy text NOT NULL CHECK (reminder_policy IN ('fixed_48h', 'time_slots')),
    created_at noroshi.utc_text NOT NULL,
    updated_at noroshi.utc_text NOT NULL,
    PRIMARY KEY (tenant, farm_id)
);

-- line_user_id is sealed with the customer's own key.
CREATE TABLE customers (
    tenant integer NOT NULL,
    customer_id text COLLATE "C" NOT NULL,
    data_key bytea NOT NULL,
    name text,
    line_user_id bytea,
    created_at noroshi.utc_text NOT NULL,
    updated_at noroshi.utc_text NOT NULL,
    PRIMARY KEY (tenant, customer_id)
);

CREATE TABLE reservations (
    tenant integer NOT NULL,
    reservation_id bigint NOT NULL,
    farm_id bigint NOT NULL,
    customer_id text COLLATE "C" NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'confirmed', 'cancelled')),
    payment_status text NOT NULL CHECK (payment_status IN ('unpaid', 'succeeded')),
    pickup_start noroshi.utc_text NOT NULL,
    pickup_end noroshi.utc_text NOT NULL,
    pickup_code text NOT NULL CHECK (pickup_code ~ '^\d{4}$'),
    qty_5 integer NOT NULL,
    qty_10 integer NOT NULL,
    qty_25 integer NOT NULL,
    subtotal_5 bigint NOT NULL,
    subtotal_10 bigint NOT NULL,
    subtotal_25 bigint NOT NULL,
    total bigint NOT NULL,
    reminder_policy text CHECK (reminder_policy IN ('fixed_48h', 'time_slots')),
    paid_amount bigint,
    payment_reference text,
    confirmed_at noroshi.utc_text,
    cancelled_at noroshi.utc_text,
    created_at noroshi.utc_text NOT NULL,
    updated_at noroshi.utc_text NOT NULL,
    CHECK (pickup_start < pickup_end),
    PRIMARY KEY (tenant, reservation_id)
);

-- Everything a customer is told goes through this table. DASH and NONE are shown to people and never stored.
-- customer_line_user_id is sealed as it is in customers.
CREATE TABLE notification_jobs (
    tenant integer NOT NULL,
    job_id bigint NOT NULL,
    reservation_id bigint NOT NULL,
    farm_id bigint NOT NULL,
    customer_line_user_id bytea,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('CONFIRMATION', 'REMINDER', 'CANCEL_COMPLETED')),
    scheduled_at noroshi.utc_text NOT NULL,
    status text COLLATE "C" NOT NULL CHECK (status IN ('PENDING', 'SENT', 'FAILED')),
    message_text text NOT NULL,
    attempt_count integer NOT NULL DEFAULT 0,
    last_error text,
    created_at noroshi.utc_text NOT NULL,
    updated_at noroshi.utc_text NOT NULL,
    PRIMARY KEY (tenant, job_id),
    UNIQUE (tenant, reservation_id, kind)
);
CREATE INDEX notification_jobs_due ON notification_jobs (tenant, status, scheduled_at);

-- An attempt is written before LINE is called: without an end, its outcome is not known.
CREATE TABLE notification_job_attempts (
    tenant integer NOT NULL,
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    started_at noroshi.utc_text NOT NULL,
    ended_at noroshi.utc_text,
    PRIMARY KEY (tenant, job_id, attempt)
);

-- The lease of the one who sends.
CREATE TABLE notification_senders (
    tenant integer NOT NULL,
    holder text NOT NULL,
    until noroshi.utc_text NOT NULL,
    PRIMARY KEY (tenant)
) WITH (fillfactor = 50);
