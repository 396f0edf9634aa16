-- An operator's retry of finished jobs: attempts start again at 0, the errors stay. Others stay as they are, and so
-- does one whose unique key a live job holds; of several retried at once the newest gets it. All come back as they now
-- are. (holds_key twice: an index is used only by the words of its own condition, which are those of the Django that
-- made it.)
UPDATE django_jobs_job
SET state = CASE WHEN again.allowed THEN 'available' ELSE state END,
    attempt = CASE WHEN again.allowed THEN 0 ELSE attempt END,
    run_after = CASE WHEN again.allowed THEN :now ELSE run_after END,
    finalized_at = CASE WHEN again.allowed THEN NULL ELSE finalized_at END,
    cancel_requested_at = CASE WHEN again.allowed THEN NULL ELSE cancel_requested_at END,
    holds_key = holds_key OR (again.allowed AND unique_key IS NOT NULL),
    result = CASE WHEN again.allowed THEN NULL ELSE result END
FROM (
    SELECT job.id,
           job.state IN ('completed', 'failed', 'cancelled') AND (
               job.unique_key IS NULL OR job.holds_key OR (
                   job.id = max(job.id) FILTER (WHERE job.state IN ('completed', 'failed', 'cancelled'))
                            OVER (PARTITION BY job.unique_key)
                   AND NOT EXISTS (
                       SELECT 1 FROM django_jobs_job AS live WHERE live.unique_key = job.unique_key
                         AND live.holds_key AND live.holds_key = 1
                   )
               )
           ) AS allowed
    FROM json_each(:ids) AS wanted CROSS JOIN django_jobs_job AS job ON job.id = wanted.value
) AS again
WHERE django_jobs_job.id = again.id
RETURNING {job columns}
