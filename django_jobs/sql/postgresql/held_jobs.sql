-- What each of some workers has claimed: the first :each of its running jobs, in the order of their ids.
SELECT worker.id, job.id, job.name, job.queue_name, job.attempt, job.max_attempts, job.attempted_at,
    job.cancel_requested_at
FROM unnest(:worker_ids::bigint[]) AS worker(id)
CROSS JOIN LATERAL (
    SELECT * FROM django_jobs_job WHERE state = 'running' AND worker_id = worker.id
    ORDER BY worker_id, id LIMIT :each
) AS job
