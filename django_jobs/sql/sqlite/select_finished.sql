-- Look at up to :look jobs that ended in :state, those that ended last first. In this order a bulk retry ends: what it
-- retried, and failed again meanwhile, lies behind it.
WITH looked AS MATERIALIZED (
    SELECT 0 AS rank, +finalized_at AS moment, {looked columns}
    FROM django_jobs_job
    WHERE state = :state AND finalized_at IS NOT NULL
      AND (finalized_at, id) < (:after_moment, :after_id)
      AND finalized_at >= COALESCE(:finished_after, '')
    ORDER BY finalized_at DESC, id DESC
    LIMIT :look
)
{include matches}
