-- Look at up to :look available jobs of one queue, in the order of their claim. Two ranges of the index, since a comparison
-- of rows can't go down in one column and up in the others: the rest of the priority that was reached, then those below.
WITH looked AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM (
            SELECT priority AS rank, +run_after AS moment, {looked columns}
            FROM django_jobs_job
            WHERE state = 'available' AND queue_name = :queue_name AND priority = :after_rank
              AND (run_after, id) > (:after_moment, :after_id)
            ORDER BY run_after, id
            LIMIT :look
        )
        UNION ALL
        SELECT * FROM (
            SELECT priority AS rank, +run_after AS moment, {looked columns}
            FROM django_jobs_job
            WHERE state = 'available' AND queue_name = :queue_name AND priority < :after_rank
            ORDER BY priority DESC, run_after, id
            LIMIT :look
        )
    )
    LIMIT :look
)
{include matches}
