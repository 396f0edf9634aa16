-- A worker says that it has stopped.
UPDATE django_jobs_worker SET stopped_at = :now, running = 0
WHERE id = :worker_id AND stopped_at IS NULL
RETURNING {worker columns}
