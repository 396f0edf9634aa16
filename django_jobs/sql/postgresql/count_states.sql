-- How many jobs are in each state, :most at most: each read off the index of that state, in its order.
-- (SELECT :most) hides the limit from the planner. It takes it for a small part of the rows, and so reads them in the
-- order of the index; where statistics are stale it would else think it could as well read them all, and sort them.
SELECT 'pending' AS state, count(*) FROM (
    SELECT 1 FROM django_jobs_job WHERE state = 'pending'
    ORDER BY id LIMIT (SELECT :most::bigint)
) AS jobs
UNION ALL
SELECT 'scheduled' AS state, count(*) FROM (
    SELECT 1 FROM django_jobs_job WHERE state = 'scheduled'
    ORDER BY run_after, id LIMIT (SELECT :most::bigint)
) AS jobs
UNION ALL
SELECT 'available' AS state, count(*) FROM (
    SELECT 1 FROM django_jobs_job WHERE state = 'available'
    ORDER BY queue_name, priority DESC, run_after, id LIMIT (SELECT :most::bigint)
) AS jobs
UNION ALL
SELECT 'running' AS state, count(*) FROM (
    SELECT 1 FROM django_jobs_job WHERE state = 'running'
    ORDER BY worker_id, id LIMIT (SELECT :most::bigint)
) AS jobs
UNION ALL
SELECT 'completed' AS state, count(*) FROM (
    SELECT 1 FROM django_jobs_job WHERE state = 'completed' AND finalized_at IS NOT NULL
    ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
) AS jobs
UNION ALL
SELECT 'failed' AS state, count(*) FROM (
    SELECT 1 FROM django_jobs_job WHERE state = 'failed' AND finalized_at IS NOT NULL
    ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
) AS jobs
UNION ALL
SELECT 'cancelled' AS state, count(*) FROM (
    SELECT 1 FROM django_jobs_job WHERE state = 'cancelled' AND finalized_at IS NOT NULL
    ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
) AS jobs
