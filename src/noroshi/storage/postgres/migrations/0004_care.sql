-- What a store says of itself: that it was restored, is being restored or moved, or was moved away. Tenant 0.
CREATE TABLE marks (
    tenant integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Vacuum by churn, not by size: the default waits until a fifth of a table is dead, which for tables whose rows come
-- and go within seconds, or of which only the newest part changes, is far too late. No pauses: they are small, or
-- little of them is dead.
ALTER TABLE deliveries SET (autovacuum_vacuum_threshold = 2000, autovacuum_analyze_threshold = 5000);
ALTER TABLE holds SET (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE batches SET (
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0.05
);
ALTER TABLE batch_bodies SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE idempotency_keys SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE message_ids SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
ALTER TABLE caught SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
-- Deciding locks the rows of people: no row dies of it, but pages must be frozen, and preferences do change.
ALTER TABLE users SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_freeze_max_age = 100000000);
