-- Insert many jobs and wake who waits for them, once for each queue.
-- The jobs' options are few and come as "shapes": arrays with one element for each distinct set of options. Each job
-- names its shape by number; where :shape is shorter than :args, the rest are of shape 1.
-- Rows come out of unnest, and so are numbered, in the order given: ids ascend in it.
WITH clock AS (
    SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now
), inserted AS (
    INSERT INTO django_jobs_job (
        name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at, holds_key,
        timeout, tags, metadata
    )
    SELECT (:names::text[])[shape], (:queue_names::text[])[shape], args, kwargs, (:priorities::smallint[])[shape],
           CASE WHEN (:pending::boolean[])[shape] THEN 'pending'
                WHEN run_after > now THEN 'scheduled' ELSE 'available' END,
           0, (:max_attempts::smallint[])[shape], 0, run_after, now, false,
           (:timeouts::float8[])[shape], (:tags::json[])[shape], (:metadata::json[])[shape]
    FROM (
        SELECT clock.now, new.args, COALESCE(new.kwargs, '{}'::json) AS kwargs, COALESCE(new.shape, 1) AS shape,
               COALESCE(
                   (:run_after::timestamptz[])[COALESCE(new.shape, 1)],
                   clock.now + make_interval(secs => (:delays::float8[])[COALESCE(new.shape, 1)]),
                   clock.now
               ) AS run_after
        FROM unnest((SELECT :args::json[]), (SELECT :kwargs::json[]), (SELECT :shape::integer[])) AS new (args, kwargs, shape),
             clock
    ) AS new
    RETURNING id, run_after, created_at
)
SELECT id, run_after, created_at, (
    SELECT count(pg_notify('django_jobs', hint)) FROM unnest(:hints::text[]) AS hint
)
FROM inserted
