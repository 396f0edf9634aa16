-- Mark the schedules that are not declared any more; they are kept, and don't run. Locked in the order of their keys, as
-- by those that declare them. One whose row changed meanwhile is looked at again under its lock.
UPDATE django_jobs_schedule AS schedule
SET removed_at = clock.now, next_tick = NULL, updated_at = clock.now
FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
WHERE id = ANY (ARRAY(
    SELECT id FROM django_jobs_schedule
    WHERE removed_at IS NULL AND key NOT IN (SELECT json_array_elements_text(:declared_keys::json))
    ORDER BY key COLLATE "C"
    FOR UPDATE
))
RETURNING {schedule columns}
