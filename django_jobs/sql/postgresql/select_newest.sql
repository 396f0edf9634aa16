-- Look at up to :look jobs, the newest first, from the id :after_id downwards. Bounded by what is looked at, not by what
-- is found: a rare one among ten million takes many short statements rather than a long one.
WITH looked AS MATERIALIZED (
    SELECT * FROM (
        SELECT 0 AS rank, NULL::timestamptz AS moment, {looked columns}
        FROM django_jobs_job
        WHERE id < :after_id::bigint
        ORDER BY id DESC
        LIMIT (SELECT :look::bigint)
    ) AS hidden
    ORDER BY id DESC LIMIT 20000
)
{include matches}
