-- The queues and priorities that have available jobs, :most at most, and since when the longest due of each is due: one
-- index descent each. In the order of the index the first job of a priority is the one that is due longest; the next
-- priority follows within the queue, or else the next queue.
WITH RECURSIVE heads AS (
    (SELECT id FROM django_jobs_job WHERE state = 'available'
     ORDER BY queue_name, priority DESC, run_after, id LIMIT 1)
    UNION ALL
    SELECT COALESCE(
        (SELECT job.id FROM django_jobs_job AS job
         WHERE job.state = 'available' AND job.queue_name = head.queue_name AND job.priority < head.priority
         ORDER BY job.queue_name, job.priority DESC, job.run_after, job.id LIMIT 1),
        (SELECT job.id FROM django_jobs_job AS job
         WHERE job.state = 'available' AND job.queue_name > head.queue_name
         ORDER BY job.queue_name, job.priority DESC, job.run_after, job.id LIMIT 1)
    )
    FROM heads CROSS JOIN LATERAL (
        SELECT queue_name, priority FROM django_jobs_job WHERE id = heads.id OFFSET 0
    ) AS head
)
SELECT head.queue_name, head.priority, head.run_after, COALESCE(:now::timestamptz, statement_timestamp())
FROM (SELECT id FROM heads WHERE id IS NOT NULL LIMIT :most) AS found
CROSS JOIN LATERAL (
    SELECT queue_name, priority, run_after FROM django_jobs_job WHERE id = found.id OFFSET 0
) AS head
