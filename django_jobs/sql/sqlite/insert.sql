-- Insert one job, in the caller's transaction. A waiting worker notices the commit by PRAGMA data_version.
INSERT INTO django_jobs_job (
    name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at, holds_key,
    timeout, tags, metadata
)
VALUES (
    :name, :queue_name, :args, :kwargs, :priority,
    CASE WHEN :pending THEN 'pending' WHEN :run_after > :now THEN 'scheduled' ELSE 'available' END,
    0, :max_attempts, 0, :run_after, :now, 0, :timeout, :tags, :metadata
)
RETURNING {job columns}
