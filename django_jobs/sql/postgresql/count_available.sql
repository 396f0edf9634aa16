-- How many available jobs each of the queues has, :most at most, read off the index of their order.
-- (SELECT :most) hides the limit from the planner. It takes it for a small part of the rows, and so reads them in the
-- order of the index; where statistics are stale it would else think it could as well read them all, and sort them.
-- LIMIT 20000 is beyond all that is asked for, and bounds what the planner takes for that part: of millions it would make
-- a plan so dear that it is compiled first (jit), which takes longer than the count.
SELECT wanted.queue_name, (
    SELECT count(*) FROM (
        SELECT FROM (
            SELECT priority, run_after, id
            FROM django_jobs_job WHERE state = 'available' AND queue_name = wanted.queue_name
            ORDER BY queue_name, priority DESC, run_after, id LIMIT (SELECT :most::bigint)
        ) AS hidden ORDER BY priority DESC, run_after, id LIMIT 20000
    ) AS jobs
)
FROM unnest((SELECT :queue_names::text[])) AS wanted (queue_name)
