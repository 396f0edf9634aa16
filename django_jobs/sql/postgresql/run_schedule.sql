-- Insert a job of a schedule, outside its ledger. No row: the schedule is gone, or a live job holds the unique key.
INSERT INTO django_jobs_job (
    name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at,
    unique_key, holds_key, key_until, timeout, tags, metadata
)
SELECT :name, :queue_name, :args::json, :kwargs::json, :priority, 'available', 0, :max_attempts, 0, clock.now,
       clock.now, :unique_key::text, :unique_key::text IS NOT NULL, :key_until::timestamptz, :timeout::float8,
       :tags::json, :metadata::json
FROM django_jobs_schedule AS schedule, (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
WHERE schedule.id = :id
ON CONFLICT (unique_key) WHERE holds_key DO NOTHING
RETURNING {job columns}, CASE WHEN :notify::boolean THEN pg_notify('django_jobs', '+' || queue_name) END
