-- How many jobs there are, by queue and state; of :queue_name alone, if given.
SELECT queue_name, state, count(*) FROM django_jobs_job
WHERE :queue_name IS NULL OR queue_name = :queue_name
GROUP BY queue_name, state ORDER BY queue_name, state
