-- How many jobs there are, by queue and state.
SELECT queue_name, state, count(*) FROM django_jobs_job GROUP BY queue_name, state ORDER BY queue_name, state
