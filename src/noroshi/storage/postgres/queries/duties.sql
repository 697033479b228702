-- name: take_duty
-- The duty is the holder's until then, if it was the holder's before or is nobody's at this moment.
INSERT INTO duties AS d (tenant, duty, holder, until) VALUES (0, $1, $2, $3)
ON CONFLICT (tenant, duty) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE d.holder = excluded.holder OR d.until <= $4;
