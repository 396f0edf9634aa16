-- Pause or resume a schedule; one that is so already stays as it is. Resumed, it owes no tick of the time that it was
-- paused, and the keeper works out the next one.
UPDATE django_jobs_schedule
SET paused_at = CASE WHEN :pause THEN COALESCE(paused_at, :now) END,
    owed_after = CASE WHEN paused_at IS NULL OR :pause THEN owed_after ELSE :now END,
    next_tick = CASE WHEN paused_at IS NULL AND NOT :pause THEN next_tick END,
    updated_at = :now
WHERE key = :key
RETURNING {schedule columns}
