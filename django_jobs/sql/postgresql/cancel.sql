-- Cancel jobs: a waiting one at once, a running one by request; a finished one stays as it is.
-- All of them come back as they now are, so two operators who cancel at once see the same; and whether they ended by it.
-- held locks the rows in the order of the ids. What is written is computed from job alone: where a claim came between
-- this statement's start and its lock, the new row is first built, and checked by the constraints, on the row as it was
-- at the start, and then again on the row as locked. A mix of both (running, but of no worker) would be refused.
WITH held AS MATERIALIZED (
    SELECT job.id, COALESCE(:now::timestamptz, statement_timestamp()) AS now
    FROM unnest((SELECT :ids::bigint[])) AS wanted (id)
    CROSS JOIN LATERAL (SELECT id FROM django_jobs_job WHERE id = wanted.id FOR UPDATE) AS job
)
UPDATE django_jobs_job AS job
SET state = CASE WHEN job.state IN ('pending', 'scheduled', 'available') THEN 'cancelled' ELSE job.state END,
    finalized_at = CASE WHEN job.state IN ('pending', 'scheduled', 'available') THEN held.now ELSE job.finalized_at END,
    holds_key = job.holds_key AND job.state NOT IN ('pending', 'scheduled', 'available'),
    cancel_requested_at = CASE WHEN job.state IN ('pending', 'scheduled', 'available', 'running')
                               THEN COALESCE(job.cancel_requested_at, held.now) ELSE job.cancel_requested_at END
FROM held
WHERE job.id = held.id
RETURNING {job columns of job}, job.state = 'cancelled' AND job.finalized_at = held.now,
    CASE WHEN :notify::boolean AND job.state = 'running' THEN pg_notify('django_jobs', '!' || job.worker_id) END
