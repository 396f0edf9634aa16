-- Seconds until the next scheduled job is due (negative: it is); no row when there is none.
SELECT extract(epoch FROM run_after - COALESCE(:now::timestamptz, statement_timestamp()))::float8
FROM django_jobs_job
WHERE state = 'scheduled'
ORDER BY run_after, id
LIMIT 1
