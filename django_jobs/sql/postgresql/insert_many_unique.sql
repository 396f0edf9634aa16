-- Insert many jobs, those with a unique key only if no job holds it, and wake who waits for what was inserted; the jobs
-- that hold the other keys come along. No key is in :unique_keys twice. Shapes as in insert_many; locks, waiting, xmax
-- ("touched") and periods as in insert_unique.
-- Ids are given in the order of the call; the rows go in in the order of their keys, so that two callers who have the
--   same keys in different orders don't wait for each other in a circle.
-- Nothing is joined to inserted or new but by the index of keys, row by row: a join of two of these would be planned
--   without knowing how many rows they have.
WITH clock AS (
    SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now
), new AS MATERIALIZED (
    SELECT nextval((SELECT pg_get_serial_sequence('django_jobs_job', 'id')::regclass)) AS id,
           clock.now, job.args, COALESCE(job.kwargs, '{}'::json) AS kwargs, COALESCE(job.shape, 1) AS shape,
           COALESCE(
               (:run_after::timestamptz[])[COALESCE(job.shape, 1)],
               clock.now + make_interval(secs => (:delays::float8[])[COALESCE(job.shape, 1)]),
               clock.now
           ) AS run_after,
           job.unique_key || COALESCE(
               to_char(to_timestamp(period.start) AT TIME ZONE 'UTC', '"@"YYYY-MM-DD"T"HH24:MI:SS"Z/"')
               || job.unique_for, ''
           ) AS unique_key,
           to_timestamp(period.start + job.unique_for) AS key_until
    FROM clock, unnest(
        (SELECT :args::json[]), (SELECT :kwargs::json[]), (SELECT :shape::integer[]), (SELECT :unique_keys::text[]),
        (SELECT :unique_for::bigint[])
    ) AS job (args, kwargs, shape, unique_key, unique_for)
    CROSS JOIN LATERAL (
        SELECT floor(extract(epoch FROM clock.now))::bigint / job.unique_for * job.unique_for AS start
    ) AS period
), inserted AS (
    INSERT INTO django_jobs_job (
        id, name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at,
        unique_key, holds_key, key_until, timeout, tags, metadata
    )
    OVERRIDING SYSTEM VALUE
    SELECT id, (:names::text[])[shape], (:queue_names::text[])[shape], args, kwargs, (:priorities::smallint[])[shape],
           CASE WHEN (:pending::boolean[])[shape] THEN 'pending'
                WHEN run_after > now THEN 'scheduled' ELSE 'available' END,
           0, (:max_attempts::smallint[])[shape], 0, run_after, now, unique_key, unique_key IS NOT NULL, key_until,
           (:timeouts::float8[])[shape], (:tags::json[])[shape], (:metadata::json[])[shape]
    FROM new
    ORDER BY unique_key
    ON CONFLICT (unique_key) WHERE holds_key DO NOTHING
    RETURNING id, run_after, created_at, unique_key, key_until,
              CASE WHEN NOT :notify::boolean OR state = 'pending' THEN NULL
                   WHEN state = 'available' THEN '+' || queue_name ELSE '@' END AS hint
)
SELECT inserted.id AS new_id, inserted.run_after AS new_run_after, inserted.created_at AS new_created_at,
       inserted.unique_key AS new_unique_key, inserted.key_until AS new_key_until, {job columns of none},
       NULL AS touched,
       (SELECT count(pg_notify('django_jobs', hint))
        FROM (SELECT DISTINCT hint FROM inserted WHERE hint IS NOT NULL) AS hints)
FROM inserted LEFT JOIN (SELECT {job columns} FROM django_jobs_job WHERE false) AS none ON true
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, {job columns of job}, job.touched, NULL
FROM new CROSS JOIN LATERAL (
    SELECT {job columns}, xmax::text AS touched
    FROM django_jobs_job WHERE unique_key = new.unique_key AND holds_key OFFSET 0
) AS job
WHERE (SELECT count(*) FROM inserted) < (SELECT count(*) FROM new)
