-- Set the next tick without running one, unless the schedule is no longer as it was read.
UPDATE django_jobs_schedule
SET next_tick = :following, last_error = '', updated_at = :now
WHERE id = :id AND paused_at IS NULL AND removed_at IS NULL
  AND owed_after = :read_owed_after
  AND next_tick IS :read_next_tick
RETURNING {schedule columns}
