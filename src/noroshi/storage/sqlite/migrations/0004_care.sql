-- What a store says of itself: that it was restored, is being restored or moved, or was moved away. Tenant 0.
CREATE TABLE marks (
    tenant INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
