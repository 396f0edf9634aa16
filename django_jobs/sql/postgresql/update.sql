-- Change where and for what a waiting job waits: queue, priority, time, most attempts; null leaves it. A job that runs or
-- has ended stays as it is, and so does one that would have no attempt left. All come back as they now are, with whether
-- they were changed.
-- held locks the rows in the order of the ids, and returns them as locked. The conditions are on job alone: PostgreSQL
-- looks at them again on the row as locked, so a job that was claimed while this statement waited is left alone.
WITH due AS MATERIALIZED (
    SELECT now, COALESCE(:run_after::timestamptz, now + make_interval(secs => :delay::float8)) AS run_after
    FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
), held AS MATERIALIZED (
    SELECT job.*
    FROM unnest((SELECT :ids::bigint[])) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT {job columns} FROM django_jobs_job WHERE id = wanted.id OFFSET 0 FOR UPDATE
    ) AS job
), changed AS (
    UPDATE django_jobs_job AS job
    SET queue_name = COALESCE(:queue_name::text, job.queue_name),
        priority = COALESCE(:priority::smallint, job.priority),
        max_attempts = COALESCE(:max_attempts::smallint, job.max_attempts),
        run_after = COALESCE(due.run_after, job.run_after),
        state = CASE WHEN job.state = 'pending' OR due.run_after IS NULL THEN job.state
                     WHEN due.run_after > due.now THEN 'scheduled' ELSE 'available' END
    FROM held, due
    WHERE job.id = held.id
      AND job.state IN ('pending', 'scheduled', 'available')
      AND job.attempt < COALESCE(:max_attempts::smallint, job.max_attempts)
    RETURNING {job columns of job}, true AS done,
        CASE WHEN :notify::boolean AND job.state <> 'pending' THEN
            pg_notify('django_jobs', CASE WHEN job.state = 'available' THEN '+' || job.queue_name ELSE '@' END)
        END
)
SELECT {job columns}, done FROM changed
UNION ALL
SELECT {job columns}, false FROM held WHERE NOT EXISTS (SELECT FROM changed WHERE changed.id = held.id)
