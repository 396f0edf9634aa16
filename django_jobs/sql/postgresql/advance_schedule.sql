-- Set the next tick without running one, unless the schedule is no longer as it was read.
UPDATE django_jobs_schedule
SET next_tick = :following::timestamptz, last_error = '', updated_at = COALESCE(:now::timestamptz, statement_timestamp())
WHERE id = :id AND paused_at IS NULL AND removed_at IS NULL
  AND owed_after = :read_owed_after::timestamptz
  AND next_tick IS NOT DISTINCT FROM :read_next_tick::timestamptz
RETURNING {schedule columns}
