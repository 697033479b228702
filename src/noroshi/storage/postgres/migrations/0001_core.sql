-- The core: people, templates, batches, notifications, deliveries, ledger. Times are microseconds since 1970, UTC.
-- Tenant stands first in every primary and unique key. The tables lie in the schema `noroshi`.

-- The database's own time, which every process shares; a test may set another for its transaction.
CREATE FUNCTION noroshi_now() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        nullif(current_setting('noroshi.now', true), '')::bigint,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    )
$$;

-- The day (since 1970, UTC) on which the batch of an id was accepted: the first 48 bits are its milliseconds.
CREATE FUNCTION noroshi_day(id bytea) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT (('x' || encode(substring(id FROM 1 FOR 6), 'hex'))::bit(48)::bigint / 86400000)::integer
$$;

-- The first id of a day: every id of that day is greater.
CREATE FUNCTION noroshi_first_id(day integer) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT decode(lpad(to_hex(day::bigint * 86400000), 12, '0'), 'hex')
$$;

-- Numbers never given before, over all processes.
CREATE SEQUENCE numbers;

CREATE TABLE tenants (
    tenant integer PRIMARY KEY,
    name text NOT NULL
);
INSERT INTO tenants (tenant, name) VALUES (1, 'default');

CREATE TABLE api_keys (
    tenant integer NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    scopes text NOT NULL,
    digest bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    per_minute integer,
    PRIMARY KEY (tenant, key_id)
);
CREATE INDEX api_keys_by_id ON api_keys (key_id);

CREATE TABLE users (
    tenant integer NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    data_key bytea NOT NULL,
    name text,
    locale text,
    timezone text,
    is_zone_confirmed boolean NOT NULL DEFAULT true,
    attributes text NOT NULL DEFAULT '{}',
    preferences text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (tenant, user_id)
) WITH (fillfactor = 90);

-- One address, number or token of a user. Number 1 is the e-mail address, 2 the phone, 10 and up are devices.
CREATE TABLE endpoints (
    tenant integer NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    endpoint_id bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    blind bytea NOT NULL,
    sealed bytea NOT NULL,
    is_active boolean NOT NULL DEFAULT true,
    platform text,
    app_version text,
    created_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    PRIMARY KEY (tenant, user_id, endpoint_id)
);
CREATE INDEX endpoints_by_blind ON endpoints (tenant, kind, blind);

-- Endpoints we must not use, by blind index: it outlives the user.
CREATE TABLE suppressions (
    tenant integer NOT NULL,
    kind text COLLATE "C" NOT NULL,
    blind bytea NOT NULL,
    reason text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant, kind, blind)
);

CREATE TABLE templates (
    tenant integer NOT NULL,
    template_row bigint NOT NULL,
    template_id text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    locale text COLLATE "C" NOT NULL,
    variant text COLLATE "C" NOT NULL DEFAULT '',
    version integer NOT NULL,
    subject text,
    title text,
    body text NOT NULL,
    metadata text NOT NULL DEFAULT '{}',
    is_active boolean NOT NULL DEFAULT true,
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, template_row),
    UNIQUE (tenant, template_id, channel, locale, variant, version)
);

-- state: 0 open (recipients left to decide), 1 decided, 2 being cancelled, 3 cancelled.
CREATE TABLE batches (
    tenant integer NOT NULL,
    batch_id bytea NOT NULL,
    template_id text NOT NULL,
    channels text NOT NULL,
    priority text NOT NULL,
    category text NOT NULL,
    content_hash bigint NOT NULL,
    created_at bigint NOT NULL,
    due_at bigint NOT NULL,
    expires_at bigint,
    digest_key text,
    created_by text NOT NULL,
    is_scheduled boolean NOT NULL,
    total integer NOT NULL,
    recipients integer NOT NULL,
    next_recipient integer NOT NULL,
    accepted integer NOT NULL,
    rejected integer NOT NULL,
    reasons text NOT NULL,
    state smallint NOT NULL,
    cancelled_at bigint,
    PRIMARY KEY (tenant, batch_id)
) WITH (fillfactor = 80);
CREATE INDEX batches_open ON batches (due_at) WHERE state = 0;
CREATE INDEX batches_cancelling ON batches (due_at) WHERE state = 2;

-- A batch's data and recipients, kept once and apart, so that counting on the batch never rewrites them.
CREATE TABLE batch_bodies (
    tenant integer NOT NULL,
    batch_id bytea NOT NULL,
    data bytea NOT NULL,
    user_ids bytea NOT NULL,
    answer bytea,
    PRIMARY KEY (tenant, batch_id)
);

CREATE TABLE idempotency_keys (
    tenant integer NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    batch_id bytea NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant, idempotency_key)
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- Recipients that got nothing, with the reason.
CREATE TABLE rejections (
    tenant integer NOT NULL,
    batch_id bytea NOT NULL,
    position integer NOT NULL,
    user_id text NOT NULL,
    code text NOT NULL,
    PRIMARY KEY (tenant, batch_id, position)
);

-- Cold, by day of the batch. standing: 0 nothing, 1 owns its content (duplicates), 2 also counts against the limits.
CREATE TABLE notifications (
    tenant integer NOT NULL,
    notification_id bytea NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    status smallint NOT NULL,
    reason text,
    at bigint NOT NULL,
    content_hash bigint NOT NULL,
    standing smallint NOT NULL,
    template_row bigint,
    sent_at bigint,
    tries integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, notification_id)
) PARTITION BY RANGE (notification_id);
CREATE INDEX notifications_by_user ON notifications (tenant, user_id, at)
    INCLUDE (channel, content_hash, standing, notification_id);

-- Days before yesterday in which something was decided of late (schedules, holds): where limits must look, too.
CREATE TABLE late_days (
    day integer PRIMARY KEY,
    last_at bigint NOT NULL
);

-- Hot: a row leaves when it is terminal. state: 0 ready at due_at, 1 leased until due_at, 2 set aside by a pause.
CREATE TABLE deliveries (
    tenant integer NOT NULL,
    notification_id bytea NOT NULL,
    endpoint_id bigint NOT NULL,
    lane text COLLATE "C" NOT NULL,
    state smallint NOT NULL DEFAULT 0,
    due_at bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    category text NOT NULL,
    template_row bigint NOT NULL,
    expires_at bigint,
    wanted_at bigint NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    claims integer NOT NULL DEFAULT 0,
    tries integer NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, notification_id, endpoint_id)
) WITH (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05
);
CREATE INDEX deliveries_ready ON deliveries (lane, due_at) WHERE state = 0;
CREATE INDEX deliveries_leased ON deliveries (due_at) WHERE state = 1;
CREATE INDEX deliveries_aside ON deliveries (category) WHERE state = 2;

-- Notifications that wait (quiet hours, limits) and are decided again when due.
CREATE TABLE holds (
    tenant integer NOT NULL,
    notification_id bytea NOT NULL,
    due_at bigint NOT NULL,
    reason text NOT NULL,
    PRIMARY KEY (tenant, notification_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE INDEX holds_due ON holds (due_at);

-- Append-only: one row per decision or outcome, by day of the batch.
CREATE TABLE ledger (
    tenant integer NOT NULL,
    notification_id bytea NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    detail text,
    PRIMARY KEY (tenant, notification_id, seq)
) PARTITION BY RANGE (notification_id);

-- How a receipt finds its notification.
CREATE TABLE message_ids (
    tenant integer NOT NULL,
    account text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    notification_id bytea NOT NULL,
    endpoint_id bigint NOT NULL,
    PRIMARY KEY (tenant, account, message_id)
);

CREATE TABLE dead_letters (
    tenant integer NOT NULL,
    dead_letter_id bigint NOT NULL,
    notification_id bytea NOT NULL,
    endpoint_id bigint NOT NULL,
    lane text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    category text NOT NULL,
    template_row bigint,
    expires_at bigint,
    wanted_at bigint NOT NULL,
    code text NOT NULL,
    error text NOT NULL,
    tries integer NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant, dead_letter_id)
);
CREATE INDEX dead_letters_by_notification ON dead_letters (tenant, notification_id);

CREATE TABLE pauses (
    tenant integer NOT NULL,
    pause_id bigint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    PRIMARY KEY (tenant, pause_id),
    UNIQUE (tenant, kind, name)
);

CREATE TABLE alerts (
    tenant integer NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    severity text NOT NULL,
    since bigint NOT NULL,
    last_at bigint NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (tenant, kind, subject)
);

-- Until when a provider account must be left alone. Accounts are the operator's: tenant 0.
CREATE TABLE accounts (
    tenant integer NOT NULL,
    account text COLLATE "C" NOT NULL,
    blocked_until bigint NOT NULL,
    why text NOT NULL,
    PRIMARY KEY (tenant, account)
);

-- What the catcher got instead of a provider.
CREATE TABLE caught (
    tenant integer NOT NULL,
    caught_id bigint NOT NULL,
    channel text NOT NULL,
    user_id text NOT NULL,
    notification_id bytea NOT NULL,
    address text NOT NULL,
    subject text,
    title text,
    body text NOT NULL,
    metadata text NOT NULL,
    caught_at bigint NOT NULL,
    PRIMARY KEY (tenant, caught_id)
);

-- The end of notifications without success, once no delivery of them is left. Two processes may end the last two
-- deliveries of one notification at the same moment: the rows are locked first, and what is asked after that sees
-- what the other has done. A dead letter of one device outweighs how the others ended.
CREATE FUNCTION end_notifications(
    tenants integer[], ids bytea[], statuses smallint[], reasons text[], were_tried boolean[], give_back boolean[]
) RETURNS SETOF bytea LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM noroshi.notifications n
    WHERE (n.tenant, n.notification_id) IN (SELECT * FROM unnest(tenants, ids))
    ORDER BY n.tenant, n.notification_id FOR UPDATE;
    RETURN QUERY
    WITH asked AS (
        SELECT r.tenant, r.id, max(r.status) AS status, max(r.reason) AS reason,
            sum(r.was_tried::integer)::integer AS tried, bool_and(r.gives_back) AS gives_back
        FROM unnest(tenants, ids, statuses, reasons, were_tried, give_back)
            AS r(tenant, id, status, reason, was_tried, gives_back)
        GROUP BY r.tenant, r.id
    ), judged AS (
        SELECT a.*, (
            SELECT d.code FROM noroshi.dead_letters d WHERE d.tenant = a.tenant AND d.notification_id = a.id
            ORDER BY d.dead_letter_id DESC LIMIT 1
        ) AS dead
        FROM asked a
    )
    UPDATE noroshi.notifications n
    SET status = CASE WHEN a.dead IS NULL THEN a.status ELSE 70 END, reason = coalesce(a.dead, a.reason),
        tries = n.tries + a.tried, standing = CASE WHEN a.gives_back AND a.dead IS NULL THEN 0 ELSE n.standing END
    FROM judged a
    WHERE n.tenant = a.tenant AND n.notification_id = a.id AND n.status < 60 AND NOT EXISTS (
        SELECT 1 FROM noroshi.deliveries d WHERE d.tenant = a.tenant AND d.notification_id = a.id
    )
    RETURNING n.notification_id;
END $$;

-- Whether a suspect is held; whoever asks waits until others who asked have committed, and then sees what they did.
CREATE FUNCTION held_suspect(now_ bigint, often integer) RETURNS SETOF integer LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7317, 1);
    RETURN QUERY SELECT 1 FROM noroshi.deliveries
        WHERE state = 1 AND due_at > now_ AND claims > often LIMIT 1;
END $$;
