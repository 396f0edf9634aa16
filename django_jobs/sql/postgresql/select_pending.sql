-- Look at up to :look pending jobs, the newest first, from the id :after_id downwards.
WITH looked AS MATERIALIZED (
    SELECT * FROM (
        SELECT 0 AS rank, NULL::timestamptz AS moment, {looked columns}
        FROM django_jobs_job
        WHERE state = 'pending' AND id < :after_id::bigint
        ORDER BY id DESC
        LIMIT (SELECT :look::bigint)
    ) AS hidden
    ORDER BY id DESC LIMIT 20000
)
{include matches}
