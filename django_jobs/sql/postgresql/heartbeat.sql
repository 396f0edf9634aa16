-- Renew a worker's lease, and bring back what it must know: the time, paused queues, its jobs with a cancel request.
-- No row: the worker was given up. The epoch only grows, whatever order heartbeats arrive in.
UPDATE django_jobs_worker AS worker
SET heartbeat_at = COALESCE(:now::timestamptz, statement_timestamp()),
    expires_at = COALESCE(:now::timestamptz, statement_timestamp()) + make_interval(secs => :lease::float8),
    running = :running, completed = :completed, failed = :failed, skew = :skew, memory = :memory,
    leads = :leads, epoch = GREATEST(epoch, :epoch)
WHERE id = :worker_id AND lost_at IS NULL AND stopped_at IS NULL
RETURNING {worker columns}, heartbeat_at,
    (SELECT json_agg(name) FROM django_jobs_queue WHERE paused_at IS NOT NULL)::text,
    (SELECT json_agg(id) FROM django_jobs_job
     WHERE state = 'running' AND worker_id = :worker_id AND cancel_requested_at IS NOT NULL)::text
