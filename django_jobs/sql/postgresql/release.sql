-- Give claims back that never started: as they were before the claim, the attempt and its time too.
-- The caller sorts the arrays by id; rows are locked in that order. OFFSET 0: as in finish.
WITH held AS MATERIALIZED (
    SELECT job.id, claim.attempted_at, job.cancel_requested_at IS NOT NULL AS cancelled,
           COALESCE(:now::timestamptz, statement_timestamp()) AS now
    FROM unnest(
        (SELECT :ids::bigint[]), (SELECT :claims::integer[]), (SELECT :attempted_at::timestamptz[])
    ) AS claim (id, claims, attempted_at)
    CROSS JOIN LATERAL (
        SELECT id, claims, state, cancel_requested_at FROM django_jobs_job WHERE id = claim.id OFFSET 0 FOR UPDATE
    ) AS job
    WHERE job.claims = claim.claims AND job.state = 'running'
)
UPDATE django_jobs_job AS job
SET state = CASE WHEN held.cancelled THEN 'cancelled' ELSE 'available' END,
    finalized_at = CASE WHEN held.cancelled THEN held.now END,
    holds_key = job.holds_key AND NOT held.cancelled,
    attempt = job.attempt - 1,
    attempted_at = held.attempted_at
FROM held
WHERE job.id = held.id
RETURNING {job columns of job},
    CASE WHEN :notify::boolean AND NOT held.cancelled THEN pg_notify('django_jobs', '+' || job.queue_name) END
