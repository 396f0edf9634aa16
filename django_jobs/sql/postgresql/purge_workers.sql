-- Forget workers that stopped, or were lost, longer ago than :older_than seconds and hold no running job.
DELETE FROM django_jobs_worker
WHERE id = ANY (ARRAY(
    SELECT id FROM django_jobs_worker AS worker
    WHERE COALESCE(stopped_at, lost_at)
          <= COALESCE(:now::timestamptz, statement_timestamp()) - make_interval(secs => :older_than::float8)
      AND NOT EXISTS (SELECT FROM django_jobs_job WHERE state = 'running' AND worker_id = worker.id)
    ORDER BY id
    FOR UPDATE SKIP LOCKED
))
RETURNING {worker columns}
