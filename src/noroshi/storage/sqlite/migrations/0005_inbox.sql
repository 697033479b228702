-- What people were told in-app.

-- How each person's inbox stands. A number is taken here and used in the same commit, so that nobody can see a number
-- before every lower one: whoever reads on after the last number seen misses nothing. The row outlives the person, for a
-- number must never come again.
CREATE TABLE inboxes (
    tenant INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    last_number INTEGER NOT NULL,
    unread INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    PRIMARY KEY (tenant, user_id)
) WITHOUT ROWID;

-- The content is sealed with the person's key.
CREATE TABLE inbox (
    tenant INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    notification_id BLOB NOT NULL,
    category TEXT NOT NULL,
    sealed BLOB NOT NULL,
    at INTEGER NOT NULL,
    read_at INTEGER,
    archived_at INTEGER,
    PRIMARY KEY (tenant, user_id, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX inbox_by_notification ON inbox (tenant, notification_id);

-- Tickets that have opened a stream: they open no second one.
CREATE TABLE spent_tickets (
    tenant INTEGER NOT NULL,
    ticket BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, ticket)
) WITHOUT ROWID;
CREATE INDEX spent_tickets_by_expiry ON spent_tickets (expires_at);
