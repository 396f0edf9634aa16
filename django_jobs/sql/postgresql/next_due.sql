-- Seconds until the next scheduled job is due (negative: it is); no row when there is none, null when it never is.
-- (PostgreSQL before 17 can't subtract from the infinite times that somebody's SQL may have written.)
SELECT CASE WHEN isfinite(run_after)
            THEN extract(epoch FROM run_after - COALESCE(:now::timestamptz, statement_timestamp()))::float8
            WHEN run_after < statement_timestamp() THEN 0.0 END
FROM django_jobs_job
WHERE state = 'scheduled'
ORDER BY run_after, id
LIMIT 1
