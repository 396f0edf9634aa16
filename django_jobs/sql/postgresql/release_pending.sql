-- An operator's release of pending jobs: each is due now, or when its time comes. Others stay as they are and don't come
-- back. held locks the rows in the order of :ids, which is sorted; OFFSET 0: as in finish.
WITH held AS MATERIALIZED (
    SELECT job.id, GREATEST(job.run_after, clock.now) AS run_after, clock.now
    FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock,
         unnest((SELECT :ids::bigint[])) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT id, state, run_after FROM django_jobs_job WHERE id = wanted.id OFFSET 0 FOR UPDATE
    ) AS job
    WHERE job.state = 'pending'
)
UPDATE django_jobs_job AS job
SET state = CASE WHEN held.run_after > held.now THEN 'scheduled' ELSE 'available' END,
    run_after = held.run_after
FROM held
WHERE job.id = held.id
RETURNING {job columns of job},
    CASE WHEN :notify::boolean THEN
        pg_notify('django_jobs', CASE WHEN job.state = 'available' THEN '+' || job.queue_name ELSE '@' END)
    END
