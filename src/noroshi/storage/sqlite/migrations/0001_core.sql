-- The core: people, templates, batches, notifications, deliveries, ledger. Times are microseconds since 1970, UTC.
-- Tenant stands first in every primary and unique key.

CREATE TABLE tenants (
    tenant INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);
INSERT INTO tenants (tenant, name) VALUES (1, 'default');

CREATE TABLE api_keys (
    tenant INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    per_minute INTEGER,
    PRIMARY KEY (tenant, key_id)
) WITHOUT ROWID;
CREATE INDEX api_keys_by_id ON api_keys (key_id);

CREATE TABLE users (
    tenant INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    data_key BLOB NOT NULL,
    name TEXT,
    locale TEXT,
    timezone TEXT,
    is_zone_confirmed INTEGER NOT NULL DEFAULT 1,
    attributes TEXT NOT NULL DEFAULT '{}',
    preferences TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, user_id)
) WITHOUT ROWID;

-- One address, number or token of a user. Number 1 is the e-mail address, 2 the phone, 10 and up are devices.
CREATE TABLE endpoints (
    tenant INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    endpoint_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    blind BLOB NOT NULL,
    sealed BLOB NOT NULL,
    is_active INTEGER NOT NULL DEFAULT 1,
    platform TEXT,
    app_version TEXT,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, user_id, endpoint_id)
) WITHOUT ROWID;
CREATE INDEX endpoints_by_blind ON endpoints (tenant, kind, blind);

-- Endpoints we must not use, by blind index: it outlives the user.
CREATE TABLE suppressions (
    tenant INTEGER NOT NULL,
    kind TEXT NOT NULL,
    blind BLOB NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, blind)
) WITHOUT ROWID;

CREATE TABLE templates (
    tenant INTEGER NOT NULL,
    template_row INTEGER NOT NULL,
    template_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    locale TEXT NOT NULL,
    variant TEXT NOT NULL DEFAULT '',
    version INTEGER NOT NULL,
    subject TEXT,
    title TEXT,
    body TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    is_active INTEGER NOT NULL DEFAULT 1,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, template_row),
    UNIQUE (tenant, template_id, channel, locale, variant, version)
);

-- state: 0 open (recipients left to decide), 1 decided, 2 being cancelled, 3 cancelled.
CREATE TABLE batches (
    tenant INTEGER NOT NULL,
    batch_id BLOB NOT NULL,
    template_id TEXT NOT NULL,
    channels TEXT NOT NULL,
    priority TEXT NOT NULL,
    category TEXT NOT NULL,
    content_hash INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    expires_at INTEGER,
    digest_key TEXT,
    created_by TEXT NOT NULL,
    is_scheduled INTEGER NOT NULL,
    total INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    next_recipient INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    reasons TEXT NOT NULL,
    state INTEGER NOT NULL,
    cancelled_at INTEGER,
    PRIMARY KEY (tenant, batch_id)
) WITHOUT ROWID;
CREATE INDEX batches_open ON batches (due_at) WHERE state = 0;
CREATE INDEX batches_cancelling ON batches (due_at) WHERE state = 2;

-- A batch's data and recipients, kept once and apart, so that counting on the batch never rewrites them.
CREATE TABLE batch_bodies (
    tenant INTEGER NOT NULL,
    batch_id BLOB NOT NULL,
    data BLOB NOT NULL,
    user_ids BLOB NOT NULL,
    answer BLOB,
    PRIMARY KEY (tenant, batch_id)
) WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    tenant INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    batch_id BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, idempotency_key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- Recipients that got nothing, with the reason.
CREATE TABLE rejections (
    tenant INTEGER NOT NULL,
    batch_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    code TEXT NOT NULL,
    PRIMARY KEY (tenant, batch_id, position)
) WITHOUT ROWID;

-- Cold. standing: 0 nothing, 1 owns its content (duplicates), 2 also counts against the limits.
CREATE TABLE notifications (
    tenant INTEGER NOT NULL,
    notification_id BLOB NOT NULL,
    user_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    status INTEGER NOT NULL,
    reason TEXT,
    at INTEGER NOT NULL,
    content_hash INTEGER NOT NULL,
    standing INTEGER NOT NULL,
    template_row INTEGER,
    sent_at INTEGER,
    tries INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, notification_id)
) WITHOUT ROWID;
CREATE INDEX notifications_by_user ON notifications (tenant, user_id, at, channel, content_hash, standing);

-- Hot: a row leaves when it is terminal. state: 0 ready at due_at, 1 leased until due_at, 2 set aside by a pause.
CREATE TABLE deliveries (
    tenant INTEGER NOT NULL,
    notification_id BLOB NOT NULL,
    endpoint_id INTEGER NOT NULL,
    lane TEXT NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    category TEXT NOT NULL,
    template_row INTEGER NOT NULL,
    expires_at INTEGER,
    wanted_at INTEGER NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0,
    claims INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, notification_id, endpoint_id)
) WITHOUT ROWID;
CREATE INDEX deliveries_by_lane ON deliveries (lane, state, due_at);
CREATE INDEX deliveries_leased ON deliveries (due_at) WHERE state = 1;
CREATE INDEX deliveries_aside ON deliveries (category) WHERE state = 2;

-- Notifications that wait (quiet hours, limits) and are decided again when due.
CREATE TABLE holds (
    tenant INTEGER NOT NULL,
    notification_id BLOB NOT NULL,
    due_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (tenant, notification_id)
) WITHOUT ROWID;
CREATE INDEX holds_due ON holds (due_at);

-- Append-only: one row per decision or outcome.
CREATE TABLE ledger (
    tenant INTEGER NOT NULL,
    notification_id BLOB NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT,
    PRIMARY KEY (tenant, notification_id, seq)
) WITHOUT ROWID;

-- How a receipt finds its notification.
CREATE TABLE message_ids (
    tenant INTEGER NOT NULL,
    account TEXT NOT NULL,
    message_id TEXT NOT NULL,
    notification_id BLOB NOT NULL,
    endpoint_id INTEGER NOT NULL,
    PRIMARY KEY (tenant, account, message_id)
) WITHOUT ROWID;

CREATE TABLE dead_letters (
    tenant INTEGER NOT NULL,
    dead_letter_id INTEGER NOT NULL,
    notification_id BLOB NOT NULL,
    endpoint_id INTEGER NOT NULL,
    lane TEXT NOT NULL,
    user_id TEXT NOT NULL,
    category TEXT NOT NULL,
    template_row INTEGER,
    expires_at INTEGER,
    wanted_at INTEGER NOT NULL,
    code TEXT NOT NULL,
    error TEXT NOT NULL,
    tries INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, dead_letter_id)
) WITHOUT ROWID;
CREATE INDEX dead_letters_by_notification ON dead_letters (tenant, notification_id);

CREATE TABLE pauses (
    tenant INTEGER NOT NULL,
    pause_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (tenant, pause_id),
    UNIQUE (tenant, kind, name)
) WITHOUT ROWID;

CREATE TABLE alerts (
    tenant INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    severity TEXT NOT NULL,
    since INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, subject)
) WITHOUT ROWID;

-- Until when a provider account must be left alone. Accounts are the operator's: tenant 0.
CREATE TABLE accounts (
    tenant INTEGER NOT NULL,
    account TEXT NOT NULL,
    blocked_until INTEGER NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (tenant, account)
) WITHOUT ROWID;

-- What the catcher got instead of a provider.
CREATE TABLE caught (
    tenant INTEGER NOT NULL,
    caught_id INTEGER NOT NULL,
    channel TEXT NOT NULL,
    user_id TEXT NOT NULL,
    notification_id BLOB NOT NULL,
    address TEXT NOT NULL,
    subject TEXT,
    title TEXT,
    body TEXT NOT NULL,
    metadata TEXT NOT NULL,
    caught_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, caught_id)
) WITHOUT ROWID;
