-- Claim up to :limit available jobs of one queue for one worker, the first in order.
-- Writers are serialized, so the rows of the subquery are still available when they are updated. A worker that was
-- given up, or has stopped, claims nothing; nor does a claim of an epoch that its worker has given up.
-- What few jobs have comes back packed into one column, which is null for all others: their claim costs a third less for
-- that. Of a queue whose jobs have such things, all comes as it is.
UPDATE django_jobs_job
SET state = 'running',
    attempt = attempt + 1,
    claims = claims % 2147483647 + 1,
    attempted_at = :now,
    worker_id = :worker_id
WHERE id IN (
    SELECT id FROM django_jobs_job
    WHERE state = 'available' AND queue_name = :queue_name
      AND EXISTS (
          SELECT 1 FROM django_jobs_worker
          WHERE id = :worker_id AND lost_at IS NULL AND stopped_at IS NULL AND epoch <= :epoch
      )
    ORDER BY priority DESC, run_after, id
    LIMIT :limit
)
RETURNING {claimed columns}
