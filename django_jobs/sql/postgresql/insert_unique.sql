-- Insert one job that has a unique key and wake who waits for it; or, if a job holds the key, bring that one.
-- DO NOTHING locks no row: whoever finishes the job that holds the key never waits for the caller's transaction. The
--   insert itself waits for a transaction that has just inserted the key, or is just changing the job that holds it,
--   and goes by what that transaction comes to: nobody is told of a duplicate that is rolled back.
-- If it had to wait, the job that holds the key may be younger than this statement's snapshot: then no row comes back,
--   or an old version of one that is no longer the holder. So that this is seen, xmax comes along: 0 means that nobody
--   has touched the row since. (Append runs its branches in order: the row is read after the insert has waited.)
--   The caller then runs the statement again.
-- The key of unique_for ends in the current period, by the clock that the rest goes by: fixed in UTC, so that all agree.
WITH new AS MATERIALIZED (
    SELECT clock.now,
           COALESCE(:run_after::timestamptz, clock.now + make_interval(secs => :delay::float8), clock.now) AS run_after,
           :unique_key::text || COALESCE(
               to_char(to_timestamp(period.start) AT TIME ZONE 'UTC', '"@"YYYY-MM-DD"T"HH24:MI:SS"Z/"')
               || :unique_for::bigint, ''
           ) AS unique_key,
           to_timestamp(period.start + :unique_for::bigint) AS key_until
    FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
    CROSS JOIN LATERAL (
        SELECT floor(extract(epoch FROM clock.now))::bigint / :unique_for::bigint * :unique_for::bigint AS start
    ) AS period
), inserted AS (
    INSERT INTO django_jobs_job (
        name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at,
        unique_key, holds_key, key_until, timeout, tags, metadata
    )
    SELECT
        :name, :queue_name, :args::json, :kwargs::json, :priority,
        CASE WHEN :pending::boolean THEN 'pending' WHEN run_after > now THEN 'scheduled' ELSE 'available' END,
        0, :max_attempts, 0, run_after, now, unique_key, true, key_until, :timeout::float8, :tags::json, :metadata::json
    FROM new
    ON CONFLICT (unique_key) WHERE holds_key DO NOTHING
    RETURNING {job columns}
)
SELECT {job columns}, NULL AS touched,
    CASE WHEN :notify::boolean AND state <> 'pending' THEN
        pg_notify('django_jobs', CASE WHEN state = 'available' THEN '+' || queue_name ELSE '@' END)::text
    END
FROM inserted
UNION ALL
SELECT {job columns of job}, job.touched, NULL
FROM new CROSS JOIN LATERAL (
    SELECT {job columns}, xmax::text AS touched
    FROM django_jobs_job WHERE unique_key = new.unique_key AND holds_key OFFSET 0
) AS job
WHERE NOT EXISTS (SELECT FROM inserted)
