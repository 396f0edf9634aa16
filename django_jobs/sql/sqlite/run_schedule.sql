-- Insert a job of a schedule. No row: the schedule is gone, or a live job holds the unique key. (ON CONFLICT has
-- no target: see insert_unique.)
INSERT INTO django_jobs_job (
    name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at,
    unique_key, holds_key, key_until, timeout, tags, metadata
)
SELECT :name, :queue_name, :args, :kwargs, :priority, 'available', 0, :max_attempts, 0, :now, :now,
       :unique_key, :unique_key IS NOT NULL, :key_until, :timeout, :tags, :metadata
FROM django_jobs_schedule AS schedule
WHERE schedule.id = :id
ON CONFLICT DO NOTHING
RETURNING {job columns}
