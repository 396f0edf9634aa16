-- Ask a worker to be quiet (:quiet 1) or not any more (0), and, with :stop, to stop. Null leaves what there is, and
-- a request that was made keeps its time. It hears of it with its next heartbeat. No row: it has stopped, or is lost.
UPDATE django_jobs_worker
SET quiet_requested_at = CASE WHEN :quiet IS NULL THEN quiet_requested_at
                              WHEN :quiet THEN COALESCE(quiet_requested_at, :now) END,
    stop_requested_at = CASE WHEN :stop THEN COALESCE(stop_requested_at, :now) ELSE stop_requested_at END
WHERE id = :worker_id AND lost_at IS NULL AND stopped_at IS NULL
RETURNING {worker columns}
