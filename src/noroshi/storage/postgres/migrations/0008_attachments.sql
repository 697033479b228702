-- Attachments of e-mails: what is told of them lies with the batch's data (null: it has none), their contents apart, so
-- that nobody reads them but who sends or looks at them. Files are mostly packed already: they are stored as they are.
ALTER TABLE batch_bodies ADD COLUMN attachments bytea;
ALTER TABLE caught ADD COLUMN attachments bytea;

CREATE TABLE attachments (
    tenant integer NOT NULL,
    batch_id bytea NOT NULL,
    position integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (tenant, batch_id, position)
);
ALTER TABLE attachments ALTER COLUMN content SET STORAGE EXTERNAL;
