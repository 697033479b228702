-- What is locked while somebody decides about people: a row for the number that a person's id comes down to. Not the
-- person's own row: a lock is written into the row it is on, and a large send would write everybody's page to the log and
-- to the disk for it. Nothing is lost with this table, since locks end with the process that holds them: a crash of the
-- database empties it, and what is missing is made.
CREATE UNLOGGED TABLE person_locks (
    person integer PRIMARY KEY
);

-- Two people of the same number wait for each other without need; the table stays below a gigabyte.
CREATE FUNCTION noroshi_person(tenant integer, user_id text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT (hashtextextended(user_id, tenant) & 16777215)::integer
$$;

INSERT INTO person_locks SELECT DISTINCT noroshi_person(tenant, user_id) FROM users;
