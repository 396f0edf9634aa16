-- Look at up to :look scheduled jobs, the first due first.
WITH looked AS MATERIALIZED (
    SELECT 0 AS rank, +run_after AS moment, {looked columns}
    FROM django_jobs_job
    WHERE state = 'scheduled' AND (run_after, id) > (:after_moment, :after_id)
    ORDER BY run_after, id
    LIMIT :look
)
{include matches}
