-- Jobs as a list shows them: without results and errors, which can be large, and with a mark in the place of arguments
-- over :most characters.
SELECT id, name,
       CASE WHEN length(args) > :most THEN '"…"' ELSE args END AS args,
       CASE WHEN length(kwargs) > :most THEN '{"…":"…"}' ELSE kwargs END AS kwargs,
       priority, attempt, max_attempts, claims, +run_after, +created_at, +cancel_requested_at,
       unique_key, holds_key, tags, error_class, NULL AS errors, NULL AS result,
       CASE WHEN length(metadata) <= :most THEN metadata END AS metadata,
       timeout, +key_until, +attempted_at, queue_name, state, worker_id, +finalized_at
FROM django_jobs_job
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id
