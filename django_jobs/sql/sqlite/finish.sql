-- Record how claims ended, any mix of outcomes in one statement; each row is
-- [id, claims, kind, run_after, error class, errors, result]. run_after is null, or the moment to run again
-- (texts of moments sort as moments do).
-- The fence: a row that is no longer this claim's (another claim, not running, gone) stays untouched and is not
-- returned.
UPDATE django_jobs_job
SET state = held.next_state,
    attempt = CASE WHEN held.kind IN ('snoozed', 'released') THEN attempt - 1 ELSE attempt END,
    run_after = CASE WHEN held.next_state IN ('scheduled', 'available') AND held.kind <> 'released'
                     THEN held.next_run ELSE run_after END,
    finalized_at = CASE WHEN held.next_state IN ('completed', 'failed', 'cancelled') THEN :now END,
    holds_key = holds_key AND held.next_state IN ('scheduled', 'available'),
    error_class = CASE WHEN held.next_state = 'completed' THEN NULL ELSE COALESCE(held.new_class, error_class) END,
    errors = COALESCE(held.new_errors, errors),
    result = held.new_result
FROM (
    SELECT job.id AS held_id, outcome.kind, outcome.next_run, outcome.new_class, outcome.new_errors,
           outcome.new_result,
           CASE
               WHEN outcome.kind = 'completed' THEN 'completed'
               WHEN job.cancel_requested_at IS NOT NULL OR outcome.kind = 'cancelled' THEN 'cancelled'
               WHEN outcome.kind = 'failed' OR (outcome.kind = 'retry' AND job.attempt >= job.max_attempts) THEN 'failed'
               WHEN outcome.kind = 'released' OR outcome.next_run <= :now THEN 'available'
               ELSE 'scheduled'
           END AS next_state
    FROM (
        SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS claims,
               json_extract(value, '$[2]') AS kind, json_extract(value, '$[3]') AS next_run,
               json_extract(value, '$[4]') AS new_class, json_extract(value, '$[5]') AS new_errors,
               json_extract(value, '$[6]') AS new_result
        FROM json_each(:rows)
    ) AS outcome
    CROSS JOIN django_jobs_job AS job ON job.id = outcome.id
    WHERE job.claims = outcome.claims AND job.state = 'running'
) AS held
WHERE django_jobs_job.id = held.held_id
RETURNING {finish columns}
