-- Look at up to :look jobs that ended in :state, those that ended last first. In this order a bulk retry ends: what it
-- retried, and failed again meanwhile, lies behind it.
WITH looked AS MATERIALIZED (
    SELECT * FROM (
        SELECT 0 AS rank, finalized_at AS moment, {looked columns}
        FROM django_jobs_job
        WHERE state = :state AND finalized_at IS NOT NULL
          AND (finalized_at, id) < (:after_moment::timestamptz, :after_id::bigint)
          AND finalized_at >= COALESCE(:finished_after::timestamptz, '-infinity')
        ORDER BY state DESC, finalized_at DESC, id DESC
        LIMIT (SELECT :look::bigint)
    ) AS hidden
    ORDER BY moment DESC, id DESC LIMIT 20000
)
{include matches}
