-- name: block_account
-- Nothing goes through the account until then; the later time wins.
INSERT INTO accounts (tenant, account, blocked_until, why) VALUES (0, ?1, ?2, ?3)
ON CONFLICT (tenant, account) DO UPDATE
SET blocked_until = max(blocked_until, excluded.blocked_until), why = excluded.why;

-- name: blocked_accounts
-- Accounts that must be left alone, and until when.
SELECT account, blocked_until FROM accounts WHERE blocked_until > ?1;

-- name: add_account
-- A row for an account that never had one.
INSERT INTO accounts (tenant, account, blocked_until, why) VALUES (0, ?1, 0, '') ON CONFLICT DO NOTHING;

-- name: hold_account
-- Pace and breaker of an account.
SELECT epoch, open_until, trial_until, full_at FROM accounts WHERE tenant = 0 AND account = ?1;

-- name: write_account
-- Pace and breaker of an account that is held.
UPDATE accounts SET epoch = ?2, open_until = ?3, trial_until = ?4, full_at = ?5 WHERE tenant = 0 AND account = ?1;

-- name: moved_breakers
-- How the breakers stand that have ever moved.
SELECT account, epoch, open_until, trial_until FROM accounts WHERE epoch > 0;

-- name: end_trial
-- Another may have the trial, unless the breaker has moved since.
UPDATE accounts SET trial_until = 0 WHERE tenant = 0 AND account = ?1 AND epoch = ?2;
