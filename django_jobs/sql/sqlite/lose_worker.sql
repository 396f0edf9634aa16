-- Take one worker for lost, of which its supervisor knows that its process has ended.
UPDATE django_jobs_worker SET lost_at = :now
WHERE id = :worker_id AND lost_at IS NULL AND stopped_at IS NULL
RETURNING {worker columns}
