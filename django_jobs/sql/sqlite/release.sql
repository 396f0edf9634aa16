-- Give claims back that never started: as they were before the claim, the attempt and its time too. Each row is
-- [id, claims, attempted_at].
UPDATE django_jobs_job
SET state = CASE WHEN cancel_requested_at IS NULL THEN 'available' ELSE 'cancelled' END,
    finalized_at = CASE WHEN cancel_requested_at IS NOT NULL THEN :now END,
    holds_key = holds_key AND cancel_requested_at IS NULL,
    attempt = attempt - 1,
    attempted_at = claim.previously
FROM (
    SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS claims,
           json_extract(value, '$[2]') AS previously
    FROM json_each(:rows)
) AS claim
WHERE django_jobs_job.id = claim.id AND django_jobs_job.claims = claim.claims AND +django_jobs_job.state = 'running'
RETURNING {job columns}
