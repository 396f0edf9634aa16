-- Jobs as a list shows them: without results and errors, which can be large, and with a mark in the place of arguments
-- over :most bytes (as stored, so that nothing is unpacked to learn its size).
SELECT id, name,
       CASE WHEN pg_column_size(args) > :most THEN '"…"'::json ELSE args END AS args,
       CASE WHEN pg_column_size(kwargs) > :most THEN '{"…":"…"}'::json ELSE kwargs END AS kwargs,
       priority, attempt, max_attempts, claims, run_after, created_at, cancel_requested_at,
       unique_key, holds_key, tags, error_class, NULL::json AS errors, NULL::json AS result,
       CASE WHEN pg_column_size(metadata) <= :most THEN metadata END AS metadata,
       timeout, key_until, attempted_at, queue_name, state, worker_id, finalized_at
FROM django_jobs_job
WHERE id = ANY (:ids::bigint[])
ORDER BY id
