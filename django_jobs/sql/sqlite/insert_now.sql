-- Insert one job that may run at once and has none of what few jobs have: what insert does with such a one, for half the
-- price, since all but the id is known and need not come back. In the caller's transaction.
INSERT INTO django_jobs_job (
    name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at, holds_key
)
VALUES (:name, :queue_name, :args, :kwargs, :priority, 'available', 0, :max_attempts, 0, :now, :now, 0)
RETURNING id
