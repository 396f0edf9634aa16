-- Record how claims ended, any mix of outcomes in one statement.
-- held: each row is found by its primary key and locked, in the order of the arrays, which the caller sorts by id, so
--   that two finishes never wait for each other in a circle. OFFSET 0 keeps the conditions on the row out of LATERAL, and
--   so the primary key the only way to find it: with state = 'running' in there, the index of running jobs looks like
--   the shorter one when statistics are stale, and all of it is walked for each outcome. (SELECT :param) hides the
--   arrays' length from the planner, so the plan is the same for one row and for 5,000.
--   What LATERAL returns is the row as locked, a cancel request of this very moment included.
-- The fence: a row that is no longer this claim's (another claim, not running, gone) stays untouched and is not
--   returned.
-- A completed job keeps a key that is held for a period; one that failed or was cancelled never does.
WITH held AS MATERIALIZED (
    SELECT outcome.id, outcome.kind, outcome.delay, outcome.error_class, outcome.errors, outcome.result, job.attempt,
           CASE
               WHEN outcome.kind = 'completed' THEN 'completed'
               WHEN job.cancel_requested_at IS NOT NULL OR outcome.kind = 'cancelled' THEN 'cancelled'
               WHEN outcome.kind = 'failed' OR (outcome.kind = 'retry' AND job.attempt >= job.max_attempts) THEN 'failed'
               WHEN outcome.kind <> 'released' AND outcome.delay > 0 THEN 'scheduled'
               ELSE 'available'
           END AS state,
           COALESCE(:now::timestamptz, statement_timestamp()) AS now
    FROM unnest(
        (SELECT :ids::bigint[]), (SELECT :claims::integer[]), (SELECT :kinds::text[]), (SELECT :delays::float8[]),
        (SELECT :error_classes::text[]), (SELECT :errors::json[]), (SELECT :results::json[])
    ) AS outcome (id, claims, kind, delay, error_class, errors, result)
    CROSS JOIN LATERAL (
        SELECT state, claims, attempt, max_attempts, cancel_requested_at
        FROM django_jobs_job WHERE id = outcome.id OFFSET 0 FOR UPDATE
    ) AS job
    WHERE job.claims = outcome.claims AND job.state = 'running'
)
UPDATE django_jobs_job AS job
SET state = held.state,
    attempt = CASE WHEN held.kind IN ('snoozed', 'released') THEN held.attempt - 1 ELSE held.attempt END,
    run_after = CASE WHEN held.state IN ('scheduled', 'available') AND held.kind <> 'released'
                     THEN held.now + make_interval(secs => COALESCE(held.delay, 0)) ELSE job.run_after END,
    finalized_at = CASE WHEN held.state IN ('completed', 'failed', 'cancelled') THEN held.now END,
    holds_key = job.holds_key AND (
        held.state IN ('scheduled', 'available') OR (held.state = 'completed' AND job.key_until IS NOT NULL)
    ),
    error_class = CASE WHEN held.state = 'completed' THEN NULL ELSE COALESCE(held.error_class, job.error_class) END,
    errors = COALESCE(held.errors, job.errors),
    result = held.result
FROM held
WHERE job.id = held.id
RETURNING {finish columns of job},
    CASE WHEN held.state IN ('scheduled', 'available') AND :notify::boolean THEN
        pg_notify('django_jobs', CASE WHEN held.state = 'available' THEN '+' || job.queue_name ELSE '@' END)
    END
