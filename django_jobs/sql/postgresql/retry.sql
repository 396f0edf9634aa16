-- An operator's retry of finished jobs: attempts start again at 0, the errors stay. Others stay as they are, and so
-- does one whose unique key a live job holds; of several retried at once the newest gets it. All come back as they now
-- are.
WITH held AS MATERIALIZED (
    SELECT job.*, COALESCE(:now::timestamptz, statement_timestamp()) AS now
    FROM unnest((SELECT :ids::bigint[])) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT id, unique_key, holds_key, state IN ('completed', 'failed', 'cancelled') AS finished
        FROM django_jobs_job WHERE id = wanted.id FOR UPDATE
    ) AS job
), again AS MATERIALIZED (
    SELECT held.id, held.now,
           held.finished AND (held.unique_key IS NULL OR held.holds_key OR (
               held.id = max(held.id) FILTER (WHERE held.finished) OVER (PARTITION BY held.unique_key)
               AND NOT EXISTS (
                   SELECT FROM django_jobs_job AS live WHERE live.unique_key = held.unique_key AND live.holds_key
               )
           )) AS allowed
    FROM held
)
UPDATE django_jobs_job AS job
SET state = CASE WHEN again.allowed THEN 'available' ELSE job.state END,
    attempt = CASE WHEN again.allowed THEN 0 ELSE job.attempt END,
    run_after = CASE WHEN again.allowed THEN again.now ELSE job.run_after END,
    finalized_at = CASE WHEN again.allowed THEN NULL ELSE job.finalized_at END,
    cancel_requested_at = CASE WHEN again.allowed THEN NULL ELSE job.cancel_requested_at END,
    holds_key = job.holds_key OR (again.allowed AND job.unique_key IS NOT NULL),
    result = CASE WHEN again.allowed THEN NULL ELSE job.result END
FROM again
WHERE job.id = again.id
RETURNING {job columns of job}, again.allowed,
    CASE WHEN :notify::boolean AND again.allowed THEN pg_notify('django_jobs', '+' || job.queue_name) END
