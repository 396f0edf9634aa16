-- Look at up to :look running jobs, by worker.
WITH looked AS MATERIALIZED (
    SELECT worker_id AS rank, NULL AS moment, {looked columns}
    FROM django_jobs_job
    WHERE state = 'running' AND (worker_id, id) > (:after_rank, :after_id)
    ORDER BY worker_id, id
    LIMIT :look
)
{include matches}
