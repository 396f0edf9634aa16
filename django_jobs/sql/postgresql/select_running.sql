-- Look at up to :look running jobs, by worker.
WITH looked AS MATERIALIZED (
    SELECT * FROM (
        SELECT worker_id AS rank, NULL::timestamptz AS moment, {looked columns}
        FROM django_jobs_job
        WHERE state = 'running' AND (worker_id, id) > (:after_rank::bigint, :after_id::bigint)
        ORDER BY worker_id, id
        LIMIT (SELECT :look::bigint)
    ) AS hidden
    ORDER BY rank, id LIMIT 20000
)
{include matches}
