-- Requests that callers write in their own transactions (`noroshi.enqueue`).

-- state: 0 waiting, 1 taken into a batch, 2 dead. They are found by their state, never by a mark of how far one has
-- read: a transaction that began earlier may commit later. A taken request has left its body to its batch.
CREATE TABLE requests (
    tenant INTEGER NOT NULL,
    request_id BLOB NOT NULL,
    idempotency_key TEXT,
    body BLOB NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    batch_id BLOB,
    code TEXT,
    error TEXT,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (tenant, request_id)
);
CREATE UNIQUE INDEX requests_by_key ON requests (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX requests_waiting ON requests (created_at) WHERE state = 0;
CREATE INDEX requests_by_state ON requests (tenant, state, request_id);
CREATE INDEX requests_keyed ON requests (created_at) WHERE idempotency_key IS NOT NULL AND state <> 0;
