-- Record that claims completed, without a result: the usual batch, and what finish does with it, for less.
-- :claims is an object {id: claims}: json_each gives its keys and values as they are, with no JSON to take apart.
-- Fenced as in finish.
UPDATE django_jobs_job
SET state = 'completed',
    finalized_at = :now,
    holds_key = holds_key AND key_until IS NOT NULL,
    error_class = NULL,
    result = NULL
FROM (SELECT CAST(key AS INTEGER) AS id, value AS claims FROM json_each(:claims)) AS outcome
WHERE django_jobs_job.id = outcome.id AND django_jobs_job.claims = outcome.claims AND django_jobs_job.state = 'running'
RETURNING id, state
