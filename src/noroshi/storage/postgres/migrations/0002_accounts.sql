-- Accounts as all processes share them: how far the pace is used up, and how the breaker stands. open_until is 0 while
-- it is closed; epoch counts its moves; trial_until is when a trial that nobody ended may be given to another.
ALTER TABLE accounts
    ADD COLUMN full_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN epoch bigint NOT NULL DEFAULT 0,
    ADD COLUMN open_until bigint NOT NULL DEFAULT 0,
    ADD COLUMN trial_until bigint NOT NULL DEFAULT 0;
ALTER TABLE accounts SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- What one process does for all, and until when it has the duty. Duties are the operator's: tenant 0.
CREATE TABLE duties (
    tenant integer NOT NULL,
    duty text COLLATE "C" NOT NULL,
    holder text NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (tenant, duty)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
