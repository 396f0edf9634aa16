-- Make scheduled jobs whose time has come available, the longest due first, :limit at most.
UPDATE django_jobs_job
SET state = 'available'
WHERE id = ANY (ARRAY(
    SELECT id FROM django_jobs_job
    WHERE state = 'scheduled' AND run_after <= COALESCE(:now::timestamptz, statement_timestamp())
    ORDER BY run_after, id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
))
RETURNING {job columns},
    CASE WHEN :notify::boolean THEN pg_notify('django_jobs', '+' || queue_name) END
