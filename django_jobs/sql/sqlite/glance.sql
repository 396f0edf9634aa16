-- Jobs as a list shows them: without results and errors, which can be large, and with a mark in the place of arguments
-- over :most characters.
SELECT id, name, queue_name,
       CASE WHEN length(args) > :most THEN '"…"' ELSE args END AS args,
       CASE WHEN length(kwargs) > :most THEN '{"…":"…"}' ELSE kwargs END AS kwargs,
       priority, state, attempt, max_attempts, claims, +run_after, +created_at, +attempted_at, +finalized_at,
       +cancel_requested_at, worker_id, unique_key, holds_key, tags, error_class,
       NULL AS errors, NULL AS result,
       CASE WHEN length(metadata) <= :most THEN metadata END AS metadata,
       timeout, +key_until
FROM django_jobs_job
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id
