-- How far an account's pace is used up, and how its breaker stands. open_until is 0 while it is closed; epoch counts
-- its moves; trial_until is when a trial that nobody ended may be given to another.
ALTER TABLE accounts ADD COLUMN full_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN open_until INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN trial_until INTEGER NOT NULL DEFAULT 0;
