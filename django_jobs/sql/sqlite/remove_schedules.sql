-- Mark the schedules that are not declared any more; they are kept, and don't run.
UPDATE django_jobs_schedule
SET removed_at = :now, next_tick = NULL, updated_at = :now
WHERE removed_at IS NULL AND key NOT IN (SELECT value FROM json_each(:declared_keys))
RETURNING {schedule columns}
