-- Look at up to :look scheduled jobs, the first due first.
WITH looked AS MATERIALIZED (
    SELECT * FROM (
        SELECT 0 AS rank, run_after AS moment, {looked columns}
        FROM django_jobs_job
        WHERE state = 'scheduled' AND (run_after, id) > (:after_moment::timestamptz, :after_id::bigint)
        ORDER BY run_after, id
        LIMIT (SELECT :look::bigint)
    ) AS hidden
    ORDER BY moment, id LIMIT 20000
)
{include matches}
