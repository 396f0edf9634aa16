-- The claims that one worker holds, in the order of their ids from :after on, :limit at most.
SELECT {job columns} FROM django_jobs_job
WHERE state = 'running' AND worker_id = :worker_id AND id > :after
ORDER BY worker_id, id
LIMIT :limit
