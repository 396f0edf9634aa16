-- What became of the jobs of each queue within the last :since seconds.
SELECT queue_name, outcome, sum(count)::bigint FROM django_jobs_stat
WHERE minute > COALESCE(:now::timestamptz, statement_timestamp()) - make_interval(secs => :since::float8)
GROUP BY queue_name, outcome ORDER BY queue_name, outcome
