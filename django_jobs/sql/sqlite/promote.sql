-- Make scheduled jobs whose time has come available, the longest due first, :limit at most.
UPDATE django_jobs_job
SET state = 'available'
WHERE id IN (
    SELECT id FROM django_jobs_job
    WHERE state = 'scheduled' AND run_after <= :now
    ORDER BY run_after, id
    LIMIT :limit
)
RETURNING {job columns}
