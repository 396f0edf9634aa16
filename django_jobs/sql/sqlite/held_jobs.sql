-- What each of some workers has claimed: the first :each of its running jobs, in the order of their ids.
SELECT worker.value, job.id, job.name, job.queue_name, job.attempt, job.max_attempts, job.attempted_at,
    job.cancel_requested_at
FROM json_each(:worker_ids) AS worker
JOIN django_jobs_job AS job ON job.id IN (
    SELECT held.id FROM django_jobs_job AS held WHERE held.state = 'running' AND held.worker_id = worker.value
    ORDER BY held.worker_id, held.id LIMIT :each
)
