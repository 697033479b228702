-- What people were told in-app.

-- How each person's inbox stands. A number is taken here and used in the same commit, under the lock of this row, so
-- that nobody can see a number before every lower one: whoever reads on after the last number seen misses nothing. The
-- row outlives the person, for a number must never come again.
CREATE TABLE inboxes (
    tenant integer NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    last_number bigint NOT NULL,
    unread bigint NOT NULL,
    changes bigint NOT NULL,
    PRIMARY KEY (tenant, user_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

-- The content is sealed with the person's key.
CREATE TABLE inbox (
    tenant integer NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    notification_id bytea NOT NULL,
    category text NOT NULL,
    sealed bytea NOT NULL,
    at bigint NOT NULL,
    read_at bigint,
    archived_at bigint,
    PRIMARY KEY (tenant, user_id, number)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
CREATE UNIQUE INDEX inbox_by_notification ON inbox (tenant, notification_id);

-- Tickets that have opened a stream: they open no second one.
CREATE TABLE spent_tickets (
    tenant integer NOT NULL,
    ticket bytea NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant, ticket)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
CREATE INDEX spent_tickets_by_expiry ON spent_tickets (expires_at);
