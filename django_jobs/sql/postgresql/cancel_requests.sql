-- A worker's jobs that are to be cancelled while they run. A read: on SQLite it can follow each commit of anybody, while a
-- heartbeat, which brings the same, would itself be a commit that all others look at.
SELECT id FROM django_jobs_job
WHERE state = 'running' AND worker_id = :worker_id::bigint AND cancel_requested_at IS NOT NULL
