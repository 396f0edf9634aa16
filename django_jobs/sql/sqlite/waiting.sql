-- The queues and priorities that have available jobs, :most at most, and since when the longest due of each is due: one
-- index descent each. In the order of the index the first job of a priority is the one that is due longest; the next
-- priority follows within the queue, or else the next queue.
WITH RECURSIVE heads AS (
    SELECT * FROM (
        SELECT id FROM django_jobs_job WHERE state = 'available'
        ORDER BY queue_name, priority DESC, run_after, id LIMIT 1
    )
    UNION ALL
    SELECT COALESCE(
        (SELECT job.id FROM django_jobs_job AS job
         WHERE job.state = 'available' AND job.queue_name = head.queue_name AND job.priority < head.priority
         ORDER BY job.queue_name, job.priority DESC, job.run_after, job.id LIMIT 1),
        (SELECT job.id FROM django_jobs_job AS job
         WHERE job.state = 'available' AND job.queue_name > head.queue_name
         ORDER BY job.queue_name, job.priority DESC, job.run_after, job.id LIMIT 1)
    )
    FROM heads CROSS JOIN django_jobs_job AS head ON head.id = heads.id
    LIMIT :most
)
SELECT head.queue_name, head.priority, +head.run_after, :now
FROM heads CROSS JOIN django_jobs_job AS head ON head.id = heads.id
