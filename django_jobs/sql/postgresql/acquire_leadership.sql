-- Become, or remain, the leader for :lease seconds. No row: another one leads.
-- Nobody leads for longer than :longest: the clock was set back since, or somebody's SQL has written that.
INSERT INTO django_jobs_leadership AS leadership (name, holder, term, acquired_at, expires_at)
SELECT :name, :holder, 1, now, now + make_interval(secs => :lease::float8)
FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder,
    term = CASE WHEN leadership.holder = excluded.holder THEN leadership.term ELSE leadership.term % 9223372036854775807 + 1 END,
    acquired_at = CASE WHEN leadership.holder = excluded.holder THEN leadership.acquired_at ELSE excluded.acquired_at END,
    expires_at = excluded.expires_at
WHERE leadership.holder = excluded.holder OR leadership.expires_at <= excluded.acquired_at
   OR leadership.expires_at > excluded.acquired_at + make_interval(secs => :longest::float8)
RETURNING name, holder, term, expires_at
