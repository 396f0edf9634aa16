-- Renew a worker's lease to the moment :lease, and bring back what it must know: the time, paused queues, its jobs with
-- a cancel request. No row: the worker was given up. (hex, since a name that somebody's SQL has written may be no text,
-- or none in UTF-8: it would be in the way of all other names.)
UPDATE django_jobs_worker
SET heartbeat_at = :now, expires_at = :lease, running = :running, completed = :completed, failed = :failed,
    skew = :skew, memory = :memory,
    leads = :leads, epoch = max(epoch, :epoch)
WHERE id = :worker_id AND lost_at IS NULL AND stopped_at IS NULL
RETURNING {worker columns}, heartbeat_at,
    (SELECT json_group_array(hex(name)) FROM django_jobs_queue WHERE paused_at IS NOT NULL AND typeof(name) = 'text'),
    (SELECT json_group_array(id) FROM django_jobs_job
     WHERE state = 'running' AND worker_id = :worker_id AND cancel_requested_at IS NOT NULL)
