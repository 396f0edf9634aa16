-- Give waiting jobs new arguments and a new time, and wake who waits for them; :ids is sorted. Those that wait no longer
-- are let be and don't come back. (The caller then undoes the savepoint that this ran in: a job that was claimed between
-- this statement's start and its lock would stay locked, and whoever finishes it would wait.)
WITH held AS MATERIALIZED (
    SELECT job.id, job.state, new.args, new.kwargs, clock.now,
           COALESCE(new.run_after, clock.now + make_interval(secs => new.delay), clock.now) AS run_after
    FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock, unnest(
        (SELECT :ids::bigint[]), (SELECT :args::json[]), (SELECT :kwargs::json[]), (SELECT :run_after::timestamptz[]),
        (SELECT :delays::float8[])
    ) AS new (id, args, kwargs, run_after, delay)
    CROSS JOIN LATERAL (
        SELECT id, state, holds_key FROM django_jobs_job WHERE id = new.id OFFSET 0 FOR UPDATE
    ) AS job
    WHERE job.holds_key AND job.state IN ('pending', 'scheduled', 'available')
)
UPDATE django_jobs_job AS job
SET args = held.args,
    kwargs = held.kwargs,
    run_after = held.run_after,
    state = CASE WHEN held.state = 'pending' THEN 'pending' WHEN held.run_after > held.now THEN 'scheduled'
                 ELSE 'available' END
FROM held
WHERE job.id = held.id
RETURNING {job columns of job},
    CASE WHEN :notify::boolean AND job.state <> 'pending' THEN
        pg_notify('django_jobs', CASE WHEN job.state = 'available' THEN '+' || job.queue_name ELSE '@' END)
    END
