-- Insert one job that has a unique key; or, if a job holds the key, bring that one.
-- No target is named after ON CONFLICT: the index has the condition "holds_key" or "holds_key = 1", as the Django that
-- made it writes it, and SQLite compares the text. (Ids are new, so only the key can conflict.)
-- DO UPDATE writes what is there already, for DO NOTHING would return no row. Writers are serialized: nobody waits for it.
-- The last column tells which: sqlite_sequence is written when the statement ends, so until then it has the greatest id
-- of before.
INSERT INTO django_jobs_job (
    name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at, unique_key,
    holds_key, key_until, timeout, tags, metadata
)
VALUES (
    :name, :queue_name, :args, :kwargs, :priority,
    CASE WHEN :pending THEN 'pending' WHEN :run_after > :now THEN 'scheduled' ELSE 'available' END,
    0, :max_attempts, 0, :run_after, :now, :unique_key, 1, :key_until, :timeout, :tags, :metadata
)
ON CONFLICT DO UPDATE SET claims = claims
RETURNING {job columns}, id > COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'django_jobs_job'), 0)
