-- How many jobs of each queue there are among the first :most of each state but available (which are in order within
-- their queue): of scheduled ones those due first, of finished ones those that ended last. Of completed and cancelled ones :most_ended: who
-- asks how queues stand gives 0, since those are read from all over the table, and it does not depend on them.
SELECT queue_name, state, count(*) FROM (
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'pending'
        ORDER BY id LIMIT :most
    ) AS pending
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'scheduled'
        ORDER BY run_after, id LIMIT :most
    ) AS scheduled
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'running'
        ORDER BY worker_id, id LIMIT :most
    ) AS running
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'completed' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT :most_ended
    ) AS completed
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'failed' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT :most
    ) AS failed
    UNION ALL
    SELECT * FROM (
        SELECT state, queue_name FROM django_jobs_job WHERE state = 'cancelled' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT :most_ended
    ) AS cancelled
) AS looked
GROUP BY queue_name, state ORDER BY queue_name, state
