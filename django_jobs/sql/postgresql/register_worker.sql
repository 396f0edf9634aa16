-- A new worker process, with a lease of :lease seconds.
INSERT INTO django_jobs_worker (
    host, pid, queues, concurrency, version, started_at, heartbeat_at, expires_at, running, completed, failed,
    skew
)
SELECT :host, :pid, :queues::json, :concurrency, :version, now, now, now + make_interval(secs => :lease::float8), 0, 0, 0, 0
FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
RETURNING {worker columns}
