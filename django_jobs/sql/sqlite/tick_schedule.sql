-- Run a tick: move the ledger on. In one transaction with run_schedule, which has inserted the job before; where this
-- finds nothing (another keeper was first; it was paused, removed or changed meanwhile) that is taken back.
-- That last_tick only grows holds whatever else was written: a clock that steps back, a declaration that changes and
-- changes back.
UPDATE django_jobs_schedule
SET last_tick = :tick, next_tick = :following, last_job_id = COALESCE(:job_id, last_job_id), last_error = '',
    updated_at = :now
WHERE id = :id AND paused_at IS NULL AND removed_at IS NULL
  AND owed_after = :read_owed_after
  AND next_tick IS :read_next_tick
  AND (last_tick IS NULL OR last_tick < :tick)
RETURNING {schedule columns}
