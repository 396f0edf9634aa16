-- Look at up to :look available jobs of all queues, queue by queue, each in the order of its claim. Three ranges of the
-- index: the rest of the priority that was reached, the rest of its queue, the queues behind.
WITH looked AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM (
            SELECT priority AS rank, +run_after AS moment, {looked columns}
            FROM django_jobs_job
            WHERE state = 'available' AND queue_name = :after_queue AND priority = :after_rank
              AND (run_after, id) > (:after_moment, :after_id)
            ORDER BY run_after, id
            LIMIT :look
        )
        UNION ALL
        SELECT * FROM (
            SELECT priority AS rank, +run_after AS moment, {looked columns}
            FROM django_jobs_job
            WHERE state = 'available' AND queue_name = :after_queue AND priority < :after_rank
            ORDER BY priority DESC, run_after, id
            LIMIT :look
        )
        UNION ALL
        SELECT * FROM (
            SELECT priority AS rank, +run_after AS moment, {looked columns}
            FROM django_jobs_job
            WHERE state = 'available' AND queue_name > :after_queue
            ORDER BY queue_name, priority DESC, run_after, id
            LIMIT :look
        )
    )
    LIMIT :look
)
{include matches}
