-- How many available jobs each of the queues has, :most at most, read off the index of their order.
SELECT wanted.queue_name, (
    SELECT count(*) FROM (
        SELECT 1 FROM django_jobs_job WHERE state = 'available' AND queue_name = wanted.queue_name
        ORDER BY queue_name, priority DESC, run_after, id LIMIT :most
    ) AS jobs
)
FROM unnest((SELECT :queue_names::text[])) AS wanted (queue_name)
