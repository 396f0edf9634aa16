-- What each of some workers has claimed: the first :each of its running jobs, in the order of their ids.
SELECT wanted.value, job.id, job.name, job.queue_name, job.attempt, job.max_attempts, +job.attempted_at,
    +job.cancel_requested_at
FROM json_each(:worker_ids) AS wanted
JOIN django_jobs_job AS job ON job.id IN (
    SELECT head.id FROM django_jobs_job AS head WHERE head.state = 'running' AND head.worker_id = wanted.value
    ORDER BY head.worker_id, head.id LIMIT :each
)
