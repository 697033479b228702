-- Requests that callers write in their own transactions (`noroshi.enqueue`).

-- state: 0 waiting, 1 taken into a batch, 2 dead. They are found by their state, never by a mark of how far one has
-- read: a transaction that began earlier may commit later. A taken request has left its body to its batch.
CREATE TABLE noroshi.requests (
    tenant integer NOT NULL,
    request_id bytea NOT NULL,
    idempotency_key text COLLATE "C",
    body bytea NOT NULL,
    state smallint NOT NULL DEFAULT 0,
    batch_id bytea,
    code text,
    error text,
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    PRIMARY KEY (tenant, request_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
CREATE UNIQUE INDEX requests_by_key ON noroshi.requests (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX requests_waiting ON noroshi.requests (created_at) WHERE state = 0;
CREATE INDEX requests_by_state ON noroshi.requests (tenant, state, request_id);
CREATE INDEX requests_keyed ON noroshi.requests (created_at) WHERE idempotency_key IS NOT NULL AND state <> 0;
