-- What became of the jobs of each queue since the moment :since.
SELECT queue_name, outcome, sum(count) FROM django_jobs_stat
WHERE minute > :since
GROUP BY queue_name, outcome ORDER BY queue_name, outcome
