-- Insert one job and wake who waits for it. In the caller's transaction: the wake-up is sent when that commits.
INSERT INTO django_jobs_job (
    name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at, holds_key,
    timeout, tags, metadata
)
SELECT
    :name, :queue_name, :args::json, :kwargs::json, :priority,
    CASE WHEN :pending::boolean THEN 'pending' WHEN due.run_after > due.now THEN 'scheduled' ELSE 'available' END,
    0, :max_attempts, 0, due.run_after, due.now, false, :timeout::float8, :tags::json, :metadata::json
FROM (
    SELECT clock.now,
           COALESCE(:run_after::timestamptz, clock.now + make_interval(secs => :delay::float8), clock.now) AS run_after
    FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
) AS due
RETURNING {job columns},
    CASE WHEN :notify::boolean AND state <> 'pending' THEN
        pg_notify('django_jobs', CASE WHEN state = 'available' THEN '+' || queue_name ELSE '@' END)
    END
