-- The time, and the workers that have neither stopped nor been lost; without one, a row of nulls beside the time.
SELECT clock.now, worker.id, worker.host, worker.pid, worker.queues, worker.concurrency, worker.running, worker.version,
       worker.skew, +worker.started_at, +worker.heartbeat_at, +worker.expires_at, +worker.quiet_requested_at,
       +worker.stop_requested_at
FROM (SELECT :now AS now) AS clock
LEFT JOIN django_jobs_worker AS worker ON worker.stopped_at IS NULL AND worker.lost_at IS NULL
ORDER BY worker.id
