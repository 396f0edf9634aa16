-- How many available jobs each of the queues has, :most at most, read off the index of their order.
-- (SELECT :most) hides the limit from the planner. It takes it for a small part of the rows, and so reads them in the
-- order of the index; where statistics are stale it would else think it could as well read them all, and sort them.
SELECT wanted.queue_name, (
    SELECT count(*) FROM (
        SELECT 1 FROM django_jobs_job WHERE state = 'available' AND queue_name = wanted.queue_name
        ORDER BY queue_name, priority DESC, run_after, id LIMIT (SELECT :most::bigint)
    ) AS jobs
)
FROM unnest((SELECT :queue_names::text[])) AS wanted (queue_name)
