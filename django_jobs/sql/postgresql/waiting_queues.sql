-- The queues that have available jobs: one index descent each, never a scan of all.
WITH RECURSIVE waiting AS (
    (SELECT queue_name FROM django_jobs_job WHERE state = 'available' ORDER BY queue_name LIMIT 1)
    UNION ALL
    SELECT (SELECT job.queue_name FROM django_jobs_job AS job
            WHERE job.state = 'available' AND job.queue_name > waiting.queue_name ORDER BY job.queue_name LIMIT 1)
    FROM waiting WHERE waiting.queue_name IS NOT NULL
)
SELECT queue_name FROM waiting WHERE queue_name IS NOT NULL
