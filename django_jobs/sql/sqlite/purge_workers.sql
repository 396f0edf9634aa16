-- Forget workers that stopped, or were lost, before the moment :older_than and hold no running job.
DELETE FROM django_jobs_worker
WHERE COALESCE(stopped_at, lost_at) <= :older_than
  AND NOT EXISTS (SELECT 1 FROM django_jobs_job AS job WHERE job.state = 'running' AND job.worker_id = django_jobs_worker.id)
RETURNING {worker columns}
