-- What finish does, for outcomes some of which are not kept: a row that ends in one of the states of :unkept (for each
-- outcome a list, with commas) is deleted instead of updated, unless it is completed and holds its key for a period.
-- It comes back as finish would have stored it.
-- Rows are found, locked in the order of their ids and fenced as in finish, whose states are those of held. gone and kept
-- look at the row that held has locked, by conditions of which exactly one is true.
WITH held AS MATERIALIZED (
    SELECT outcome.id, outcome.kind, outcome.delay, outcome.error_class, outcome.errors, outcome.result, outcome.unkept,
           job.attempt,
           CASE
               WHEN outcome.kind = 'completed' THEN 'completed'
               WHEN job.cancel_requested_at IS NOT NULL OR outcome.kind = 'cancelled' THEN 'cancelled'
               WHEN outcome.kind = 'failed' OR (outcome.kind = 'retry' AND job.attempt >= job.max_attempts) THEN 'failed'
               WHEN outcome.kind <> 'released' AND outcome.delay > 0 THEN 'scheduled'
               ELSE 'available'
           END AS state,
           job.holds_key AND outcome.kind = 'completed' AND job.key_until IS NOT NULL AS holds_key,
           COALESCE(:now::timestamptz, statement_timestamp()) AS now
    FROM unnest(
        (SELECT :ids::bigint[]), (SELECT :claims::integer[]), (SELECT :kinds::text[]), (SELECT :delays::float8[]),
        (SELECT :error_classes::text[]), (SELECT :errors::json[]), (SELECT :results::json[]), (SELECT :unkept::text[])
    ) AS outcome (id, claims, kind, delay, error_class, errors, result, unkept)
    CROSS JOIN LATERAL (
        SELECT state, claims, attempt, max_attempts, cancel_requested_at, holds_key, key_until
        FROM django_jobs_job WHERE id = outcome.id OFFSET 0 FOR UPDATE
    ) AS job
    WHERE job.claims = outcome.claims AND job.state = 'running'
), gone AS (
    DELETE FROM django_jobs_job AS job
    USING held
    WHERE job.id = held.id AND held.state = ANY (string_to_array(held.unkept, ','))
      AND NOT (held.holds_key AND job.key_until > held.now)
    RETURNING job.id, job.name, job.queue_name, job.args, job.kwargs, job.priority, held.state,
        CASE WHEN held.kind IN ('snoozed', 'released') THEN held.attempt - 1 ELSE held.attempt END AS attempt,
        job.max_attempts, job.claims, job.run_after, job.created_at, job.attempted_at, held.now AS finalized_at, job.cancel_requested_at,
        job.worker_id, job.unique_key, held.holds_key, job.tags,
        CASE WHEN held.state <> 'completed' THEN COALESCE(held.error_class, job.error_class) END AS error_class,
        COALESCE(held.errors, job.errors) AS errors, held.result, job.metadata, job.timeout, job.key_until,
        NULL AS told
), kept AS (
    UPDATE django_jobs_job AS job
    SET state = held.state,
        attempt = CASE WHEN held.kind IN ('snoozed', 'released') THEN held.attempt - 1 ELSE held.attempt END,
        run_after = CASE WHEN held.state IN ('scheduled', 'available') AND held.kind <> 'released'
                         THEN held.now + make_interval(secs => COALESCE(held.delay, 0)) ELSE job.run_after END,
        finalized_at = CASE WHEN held.state IN ('completed', 'failed', 'cancelled') THEN held.now END,
        holds_key = held.holds_key OR (job.holds_key AND held.state IN ('scheduled', 'available')),
        error_class = CASE WHEN held.state = 'completed' THEN NULL ELSE COALESCE(held.error_class, job.error_class) END,
        errors = COALESCE(held.errors, job.errors),
        result = held.result
    FROM held
    WHERE job.id = held.id AND (
        NOT held.state = ANY (string_to_array(held.unkept, ',')) OR (held.holds_key AND job.key_until > held.now)
    )
    RETURNING job.*,
        CASE WHEN held.state IN ('scheduled', 'available') AND :notify::boolean THEN
            pg_notify('django_jobs', CASE WHEN held.state = 'available' THEN '+' || job.queue_name ELSE '@' END)
        END::text AS told
)
SELECT {finish columns}, told FROM gone
UNION ALL
SELECT {finish columns}, told FROM kept
