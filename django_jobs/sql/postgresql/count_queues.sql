-- How many jobs of each queue there are among the first :most of each state but available (which are in order within
-- their queue): of scheduled ones those due first, of finished ones those that ended last. Of
-- completed and cancelled ones :most_ended: who asks how queues stand gives 0, since those are read from all over the
-- table, and it does not depend on them.
-- (SELECT :most) hides the limit from the planner. It takes it for a small part of the rows, and so reads them in the
-- order of the index; where statistics are stale it would else think it could as well read them all, and sort them.
SELECT queue_name, state, count(*) FROM (
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'pending'
        ORDER BY id LIMIT (SELECT :most::bigint)
    ) AS pending
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'scheduled'
        ORDER BY run_after, id LIMIT (SELECT :most::bigint)
    ) AS scheduled
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'running'
        ORDER BY worker_id, id LIMIT (SELECT :most::bigint)
    ) AS running
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'completed' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most_ended::bigint)
    ) AS completed
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'failed' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
    ) AS failed
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'cancelled' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most_ended::bigint)
    ) AS cancelled
) AS looked
GROUP BY queue_name, state ORDER BY queue_name, state
