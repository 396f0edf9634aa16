-- Claim up to :limit available jobs of one queue for one worker, the first in order.
-- ARRAY(...) makes an InitPlan, which runs once: a bare IN (SELECT ... LIMIT) may be run again by a join and then
-- claims more. SKIP LOCKED: two workers never wait for each other. A worker that was given up, or has stopped, claims
-- nothing, so it can't take jobs that nobody would rescue soon; nor does a claim of an epoch that its worker has given up
-- (it did not hear of it in time), however late it gets here. A number of claims that somebody's SQL has made the
-- greatest begins again: one row that overflows would keep all others of its queue from being claimed.
UPDATE django_jobs_job
SET state = 'running',
    attempt = attempt + 1,
    claims = claims % 2147483647 + 1,
    attempted_at = COALESCE(:now::timestamptz, statement_timestamp()),
    worker_id = :worker_id::bigint
WHERE id = ANY (ARRAY(
    SELECT id FROM django_jobs_job
    WHERE state = 'available' AND queue_name = :queue_name
      AND EXISTS (
          SELECT FROM django_jobs_worker
          WHERE id = :worker_id::bigint AND lost_at IS NULL AND stopped_at IS NULL AND epoch <= :epoch
      )
    ORDER BY queue_name, priority DESC, run_after, id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
))
RETURNING {claimed columns}
