-- Change where and for what a waiting job waits: queue, priority, time, most attempts; null leaves it. A job that runs or
-- has ended stays as it is, and so does one that would have no attempt left. All come back as they now are, with whether
-- they were changed (what that hangs on is not changed, so it reads the same after as before).
UPDATE django_jobs_job
SET queue_name = CASE WHEN wanted.allowed THEN COALESCE(:queue_name, queue_name) ELSE queue_name END,
    priority = CASE WHEN wanted.allowed THEN COALESCE(:priority, priority) ELSE priority END,
    max_attempts = CASE WHEN wanted.allowed THEN COALESCE(:max_attempts, max_attempts) ELSE max_attempts END,
    run_after = CASE WHEN wanted.allowed THEN COALESCE(:run_after, run_after) ELSE run_after END,
    state = CASE WHEN wanted.allowed AND state <> 'pending' AND :run_after IS NOT NULL
                 THEN CASE WHEN :run_after > :now THEN 'scheduled' ELSE 'available' END ELSE state END
FROM (
    SELECT job.id,
           job.state IN ('pending', 'scheduled', 'available')
               AND job.attempt < COALESCE(:max_attempts, job.max_attempts) AS allowed
    FROM json_each(:ids) AS given CROSS JOIN django_jobs_job AS job ON job.id = given.value
) AS wanted
WHERE django_jobs_job.id = wanted.id
RETURNING {job columns},
    state IN ('pending', 'scheduled', 'available') AND attempt < COALESCE(:max_attempts, max_attempts)
