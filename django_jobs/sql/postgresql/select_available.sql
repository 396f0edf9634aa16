-- Look at up to :look available jobs of one queue, in the order of their claim. Two ranges of the index, since a comparison
-- of rows can't go down in one column and up in the others: the rest of the priority that was reached, then those below.
WITH looked AS MATERIALIZED (
    SELECT * FROM (
        (SELECT * FROM (
            SELECT priority AS rank, run_after AS moment, {looked columns}
            FROM django_jobs_job
            WHERE state = 'available' AND queue_name = :queue_name AND priority = :after_rank::smallint
              AND (run_after, id) > (:after_moment::timestamptz, :after_id::bigint)
            ORDER BY queue_name, priority DESC, run_after, id
            LIMIT (SELECT :look::bigint)
        ) AS hidden ORDER BY moment, id LIMIT 20000)
        UNION ALL
        (SELECT * FROM (
            SELECT priority AS rank, run_after AS moment, {looked columns}
            FROM django_jobs_job
            WHERE state = 'available' AND queue_name = :queue_name AND priority < :after_rank::smallint
            ORDER BY queue_name, priority DESC, run_after, id
            LIMIT (SELECT :look::bigint)
        ) AS hidden ORDER BY rank DESC, moment, id LIMIT 20000)
    ) AS either
    LIMIT (SELECT :look::bigint)
)
{include matches}
