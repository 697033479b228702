-- Reservations and what customers are told about them (L1, L16). Every time in these tables is text of one form, in UTC,
-- so that text compares as time does: YYYY-MM-DDTHH:MM:SS.ffffff+00:00.

-- The last number given to each kind of thing.
CREATE TABLE reservation_counters (
    tenant INTEGER NOT NULL,
    name TEXT NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;

CREATE TABLE farms (
    tenant INTEGER NOT NULL,
    farm_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    pickup_place_name TEXT,
    pickup_map_url TEXT,
    pickup_detail_memo TEXT,
    label_5kg TEXT NOT NULL,
    label_10kg TEXT NOT NULL,
    label_25kg TEXT NOT NULL,
    reminder_policy TEXT NOT NULL CHECK (reminder_policy IN ('fixed_48h', 'time_slots')),
    created_at TEXT NOT NULL
        CHECK (created_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    updated_at TEXT NOT NULL
        CHECK (updated_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    PRIMARY KEY (tenant, farm_id)
) WITHOUT ROWID;

-- line_user_id is sealed with the customer's own key.
CREATE TABLE customers (
    tenant INTEGER NOT NULL,
    customer_id TEXT NOT NULL,
    data_key BLOB NOT NULL,
    name TEXT,
    line_user_id BLOB,
    created_at TEXT NOT NULL
        CHECK (created_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    updated_at TEXT NOT NULL
        CHECK (updated_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    PRIMARY KEY (tenant, customer_id)
) WITHOUT ROWID;

CREATE TABLE reservations (
    tenant INTEGER NOT NULL,
    reservation_id INTEGER NOT NULL,
    farm_id INTEGER NOT NULL,
    customer_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'confirmed', 'cancelled')),
    payment_status TEXT NOT NULL CHECK (payment_status IN ('unpaid', 'succeeded')),
    pickup_start TEXT NOT NULL
        CHECK (pickup_start GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    pickup_end TEXT NOT NULL
        CHECK (pickup_end GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    pickup_code TEXT NOT NULL CHECK (pickup_code GLOB '[0-9][0-9][0-9][0-9]'),
    qty_5 INTEGER NOT NULL,
    qty_10 INTEGER NOT NULL,
    qty_25 INTEGER NOT NULL,
    subtotal_5 INTEGER NOT NULL,
    subtotal_10 INTEGER NOT NULL,
    subtotal_25 INTEGER NOT NULL,
    total INTEGER NOT NULL,
    reminder_policy TEXT CHECK (reminder_policy IN ('fixed_48h', 'time_slots')),
    paid_amount INTEGER,
    payment_reference TEXT,
    confirmed_at TEXT
        CHECK (confirmed_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    cancelled_at TEXT
        CHECK (cancelled_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    created_at TEXT NOT NULL
        CHECK (created_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    updated_at TEXT NOT NULL
        CHECK (updated_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    CHECK (pickup_start < pickup_end),
    PRIMARY KEY (tenant, reservation_id)
) WITHOUT ROWID;

-- Everything a customer is told goes through this table. DASH and NONE are shown to people and never stored.
-- customer_line_user_id is sealed as it is in customers.
CREATE TABLE notification_jobs (
    tenant INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    reservation_id INTEGER NOT NULL,
    farm_id INTEGER NOT NULL,
    customer_line_user_id BLOB,
    kind TEXT NOT NULL CHECK (kind IN ('CONFIRMATION', 'REMINDER', 'CANCEL_COMPLETED')),
    scheduled_at TEXT NOT NULL
        CHECK (scheduled_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    status TEXT NOT NULL CHECK (status IN ('PENDING', 'SENT', 'FAILED')),
    message_text TEXT NOT NULL,
    attempt_count INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    created_at TEXT NOT NULL
        CHECK (created_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    updated_at TEXT NOT NULL
        CHECK (updated_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    PRIMARY KEY (tenant, job_id),
    UNIQUE (tenant, reservation_id, kind)
) WITHOUT ROWID;
CREATE INDEX notification_jobs_due ON notification_jobs (tenant, status, scheduled_at);

-- An attempt is written before LINE is called: without an end, its outcome is not known.
CREATE TABLE notification_job_attempts (
    tenant INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    started_at TEXT NOT NULL
        CHECK (started_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    ended_at TEXT
        CHECK (ended_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    PRIMARY KEY (tenant, job_id, attempt)
) WITHOUT ROWID;

-- The lease of the one who sends.
CREATE TABLE notification_senders (
    tenant INTEGER NOT NULL,
    holder TEXT NOT NULL,
    until TEXT NOT NULL
        CHECK (until GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]+00:00'),
    PRIMARY KEY (tenant)
) WITHOUT ROWID;
