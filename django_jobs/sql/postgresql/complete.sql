-- Record that claims completed, without a result: the usual batch, and what finish does with it, for less.
-- Rows are found, locked in the order of their ids and fenced as in finish.
WITH held AS MATERIALIZED (
    SELECT outcome.id
    FROM unnest((SELECT :ids::bigint[]), (SELECT :claims::integer[])) AS outcome (id, claims)
    CROSS JOIN LATERAL (
        SELECT state, claims FROM django_jobs_job WHERE id = outcome.id OFFSET 0 FOR UPDATE
    ) AS job
    WHERE job.claims = outcome.claims AND job.state = 'running'
)
UPDATE django_jobs_job AS job
SET state = 'completed',
    finalized_at = COALESCE(:now::timestamptz, statement_timestamp()),
    holds_key = job.holds_key AND job.key_until IS NOT NULL,
    error_class = NULL,
    result = NULL
FROM held
WHERE job.id = held.id
RETURNING job.id, job.state
