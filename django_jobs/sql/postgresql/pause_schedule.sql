-- Pause or resume a schedule; one that is so already stays as it is. Resumed, it owes no tick of the time that it was
-- paused, and the keeper works out the next one.
UPDATE django_jobs_schedule AS schedule
SET paused_at = CASE WHEN :pause::boolean THEN COALESCE(paused_at, now) END,
    owed_after = CASE WHEN paused_at IS NULL OR :pause::boolean THEN owed_after ELSE now END,
    next_tick = CASE WHEN paused_at IS NULL AND NOT :pause::boolean THEN next_tick END,
    updated_at = now
FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
WHERE key = :key
RETURNING {schedule columns of schedule}, CASE WHEN :notify::boolean THEN pg_notify('django_jobs', '~') END
