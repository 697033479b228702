-- Attachments of e-mails: what is told of them lies with the batch's data (null: it has none), their contents apart, so
-- that nobody reads them but who sends or looks at them. Large rows, so not in the tree of the key.
ALTER TABLE batch_bodies ADD COLUMN attachments BLOB;
ALTER TABLE caught ADD COLUMN attachments BLOB;

CREATE TABLE attachments (
    tenant INTEGER NOT NULL,
    batch_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (tenant, batch_id, position)
);
