-- Take workers whose lease ran out for lost. From here on their heartbeat finds no row, and they learn it.
UPDATE django_jobs_worker
SET lost_at = :now
WHERE lost_at IS NULL AND stopped_at IS NULL AND expires_at < :now
RETURNING {worker columns}
