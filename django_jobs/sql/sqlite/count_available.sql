-- How many available jobs each of the queues has, :most at most, read off the index of their order.
SELECT wanted.value, (
    SELECT count(*) FROM (
        SELECT 1 FROM django_jobs_job WHERE state = 'available' AND queue_name = wanted.value
        ORDER BY queue_name, priority DESC, run_after, id LIMIT :most
    ) AS jobs
)
FROM json_each(:queue_names) AS wanted
