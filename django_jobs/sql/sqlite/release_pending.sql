-- An operator's release of pending jobs: each is due now, or when its time comes. Others stay as they are and don't come
-- back.
UPDATE django_jobs_job
SET state = CASE WHEN run_after > :now THEN 'scheduled' ELSE 'available' END,
    run_after = max(run_after, :now)
WHERE id IN (SELECT value FROM json_each(:ids)) AND +state = 'pending'
RETURNING {job columns}
