-- The queues that have available jobs: one index descent each, never a scan of all.
WITH RECURSIVE waiting AS (
    SELECT min(queue_name) AS queue_name FROM django_jobs_job WHERE state = 'available'
    UNION ALL
    SELECT (SELECT min(job.queue_name) FROM django_jobs_job AS job
            WHERE job.state = 'available' AND job.queue_name > waiting.queue_name)
    FROM waiting WHERE waiting.queue_name IS NOT NULL
)
SELECT queue_name FROM waiting WHERE queue_name IS NOT NULL
