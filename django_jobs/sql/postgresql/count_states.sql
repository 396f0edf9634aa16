-- How many jobs are in each state, :most at most: each read off the index of that state, in its order.
-- (SELECT :most) hides the limit from the planner. It takes it for a small part of the rows, and so reads them in the
-- order of the index; where statistics are stale it would else think it could as well read them all, and sort them.
-- LIMIT 20000 is beyond all that is asked for, and bounds what the planner takes for that part: of millions it would make
-- a plan so dear that it is compiled first (jit), which takes longer than the count.
SELECT 'pending' AS state, count(*) FROM (
    SELECT FROM (
        SELECT id FROM django_jobs_job WHERE state = 'pending'
        ORDER BY id LIMIT (SELECT :most::bigint)
    ) AS hidden ORDER BY id LIMIT 20000
) AS jobs
UNION ALL
SELECT 'scheduled' AS state, count(*) FROM (
    SELECT FROM (
        SELECT run_after, id FROM django_jobs_job WHERE state = 'scheduled'
        ORDER BY run_after, id LIMIT (SELECT :most::bigint)
    ) AS hidden ORDER BY run_after, id LIMIT 20000
) AS jobs
UNION ALL
SELECT 'available' AS state, count(*) FROM (
    SELECT FROM (
        SELECT queue_name, priority, run_after, id FROM django_jobs_job WHERE state = 'available'
        ORDER BY queue_name, priority DESC, run_after, id LIMIT (SELECT :most::bigint)
    ) AS hidden ORDER BY queue_name, priority DESC, run_after, id LIMIT 20000
) AS jobs
UNION ALL
SELECT 'running' AS state, count(*) FROM (
    SELECT FROM (
        SELECT worker_id, id FROM django_jobs_job WHERE state = 'running'
        ORDER BY worker_id, id LIMIT (SELECT :most::bigint)
    ) AS hidden ORDER BY worker_id, id LIMIT 20000
) AS jobs
UNION ALL
SELECT 'completed' AS state, count(*) FROM (
    SELECT FROM (
        SELECT finalized_at, id FROM django_jobs_job WHERE state = 'completed' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
    ) AS hidden ORDER BY finalized_at DESC, id DESC LIMIT 20000
) AS jobs
UNION ALL
SELECT 'failed' AS state, count(*) FROM (
    SELECT FROM (
        SELECT finalized_at, id FROM django_jobs_job WHERE state = 'failed' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
    ) AS hidden ORDER BY finalized_at DESC, id DESC LIMIT 20000
) AS jobs
UNION ALL
SELECT 'cancelled' AS state, count(*) FROM (
    SELECT FROM (
        SELECT finalized_at, id FROM django_jobs_job WHERE state = 'cancelled' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
    ) AS hidden ORDER BY finalized_at DESC, id DESC LIMIT 20000
) AS jobs
