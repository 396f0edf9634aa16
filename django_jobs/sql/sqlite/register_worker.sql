-- A new worker process; its lease ends at the moment :lease.
INSERT INTO django_jobs_worker (
    host, pid, queues, concurrency, version, started_at, heartbeat_at, expires_at, running, completed, failed,
    skew
)
VALUES (:host, :pid, :queues, :concurrency, :version, :now, :now, :lease, 0, 0, 0, 0)
RETURNING {worker columns}
