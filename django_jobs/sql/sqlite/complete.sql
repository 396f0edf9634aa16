-- Record that claims completed, without a result: the usual batch, and what finish does with it, for less.
UPDATE django_jobs_job
SET state = 'completed',
    finalized_at = :now,
    holds_key = holds_key AND key_until IS NOT NULL,
    error_class = NULL,
    result = NULL
{include ending}
RETURNING id, state
