-- When the next scheduled job is due; no row when there is none.
SELECT run_after FROM django_jobs_job WHERE state = 'scheduled' ORDER BY run_after, id LIMIT 1
