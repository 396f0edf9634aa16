-- How many jobs of each queue there are among the first :most of each state but available (which are in order within
-- their queue): of scheduled ones those due first, of finished ones those that ended last. Of
-- completed and cancelled ones :most_ended: who asks how queues stand gives 0, since those are read from all over the
-- table, and it does not depend on them.
-- (SELECT :most) hides the limit from the planner. It takes it for a small part of the rows, and so reads them in the
-- order of the index; where statistics are stale it would else think it could as well read them all, and sort them.
-- LIMIT 20000 is beyond all that is asked for, and bounds what the planner takes for that part: of millions it would make
-- a plan so dear that it is compiled first (jit), which takes longer than the count.
SELECT queue_name, state, count(*) FROM (
    SELECT state, queue_name FROM (
        SELECT * FROM (
            SELECT state, queue_name, id FROM django_jobs_job WHERE state = 'pending'
            ORDER BY id LIMIT (SELECT :most::bigint)
        ) AS hidden ORDER BY id LIMIT 20000
    ) AS pending
    UNION ALL
    SELECT state, queue_name FROM (
        SELECT * FROM (
            SELECT state, queue_name, run_after, id FROM django_jobs_job WHERE state = 'scheduled'
            ORDER BY run_after, id LIMIT (SELECT :most::bigint)
        ) AS hidden ORDER BY run_after, id LIMIT 20000
    ) AS scheduled
    UNION ALL
    SELECT state, queue_name FROM (
        SELECT * FROM (
            SELECT state, queue_name, worker_id, id FROM django_jobs_job WHERE state = 'running'
            ORDER BY worker_id, id LIMIT (SELECT :most::bigint)
        ) AS hidden ORDER BY worker_id, id LIMIT 20000
    ) AS running
    UNION ALL
    SELECT state, queue_name FROM (
        SELECT * FROM (
            SELECT state, queue_name, finalized_at, id FROM django_jobs_job WHERE state = 'completed' AND finalized_at IS NOT NULL
            ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most_ended::bigint)
        ) AS hidden ORDER BY finalized_at DESC, id DESC LIMIT 20000
    ) AS completed
    UNION ALL
    SELECT state, queue_name FROM (
        SELECT * FROM (
            SELECT state, queue_name, finalized_at, id FROM django_jobs_job WHERE state = 'failed' AND finalized_at IS NOT NULL
            ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
        ) AS hidden ORDER BY finalized_at DESC, id DESC LIMIT 20000
    ) AS failed
    UNION ALL
    SELECT state, queue_name FROM (
        SELECT * FROM (
            SELECT state, queue_name, finalized_at, id FROM django_jobs_job WHERE state = 'cancelled' AND finalized_at IS NOT NULL
            ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most_ended::bigint)
        ) AS hidden ORDER BY finalized_at DESC, id DESC LIMIT 20000
    ) AS cancelled
) AS looked
GROUP BY queue_name, state ORDER BY queue_name, state
