-- Insert one job that may run at once and has none of what few jobs have, and wake who waits for it: what insert does
-- with such a one, for half the price. A site's connection prepares no statements, so the server plans this anew each
-- time: the fewer expressions, and the fewer columns that come back, the better. All that does not come back is known.
INSERT INTO django_jobs_job (
    name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at, holds_key
)
VALUES (
    :name, :queue_name, :args::json, :kwargs::json, :priority, 'available', 0, :max_attempts, 0,
    statement_timestamp(), statement_timestamp(), false
)
RETURNING id, created_at::text, CASE WHEN :notify::boolean THEN pg_notify('django_jobs', '+' || queue_name) END
