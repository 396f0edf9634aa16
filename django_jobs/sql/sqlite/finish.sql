-- Record how claims ended, any mix of outcomes in one statement; each row is
-- [id, claims, kind, run_after, error class, errors, result], where nulls at the end are left out. run_after is null, or
-- the moment to run again (texts of moments sort as moments do).
-- The fence: a row that is no longer this claim's (another claim, not running, gone) stays untouched and is not
-- returned. (+state: the sign keeps the index of running jobs out of it. Statistics that are of a moment when few ran make
-- that look like the shorter way, and then all that run are walked through for each outcome.)
-- A completed job keeps a key that is held for a period; one that failed or was cancelled never does.
UPDATE django_jobs_job
SET (state, attempt, run_after, finalized_at, holds_key, error_class, errors, result) = (
    SELECT
        ended.state,
        CASE WHEN outcome.kind IN ('snoozed', 'released') THEN attempt - 1 ELSE attempt END,
        CASE WHEN ended.state IN ('scheduled', 'available') AND outcome.kind <> 'released'
             THEN json_extract(outcome.value, '$[3]') ELSE run_after END,
        CASE WHEN ended.state IN ('completed', 'failed', 'cancelled') THEN :now END,
        holds_key AND (
            ended.state IN ('scheduled', 'available') OR (ended.state = 'completed' AND key_until IS NOT NULL)
        ),
        CASE WHEN ended.state <> 'completed' THEN COALESCE(json_extract(outcome.value, '$[4]'), error_class) END,
        COALESCE(json_extract(outcome.value, '$[5]'), errors),
        json_extract(outcome.value, '$[6]')
    FROM (
        SELECT CASE
            WHEN outcome.kind = 'completed' THEN 'completed'
            WHEN cancel_requested_at IS NOT NULL OR outcome.kind = 'cancelled' THEN 'cancelled'
            WHEN outcome.kind = 'failed' OR (outcome.kind = 'retry' AND attempt >= max_attempts) THEN 'failed'
            WHEN outcome.kind = 'released' OR json_extract(outcome.value, '$[3]') <= :now THEN 'available'
            ELSE 'scheduled'
        END AS state
    ) AS ended
)
FROM (
    SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS claims,
           json_extract(value, '$[2]') AS kind, value
    FROM json_each(:rows)
) AS outcome
WHERE django_jobs_job.id = outcome.id AND django_jobs_job.claims = outcome.claims AND +django_jobs_job.state = 'running'
RETURNING {finish columns}
