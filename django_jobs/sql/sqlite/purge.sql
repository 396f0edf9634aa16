-- Delete jobs that ended in :state at the moment :older_than or before, :limit at most; a batch goes on where the one
-- before it ended. Ids and times only come back: nobody reads the rest, and arguments can be large. A job that holds its
-- key for a period is spared until that is over.
DELETE FROM django_jobs_job
WHERE id IN (
    SELECT id FROM django_jobs_job
    WHERE state = :state AND finalized_at IS NOT NULL AND finalized_at <= :older_than
      AND (finalized_at, id) > (:after_moment, :after_id)
      AND (NOT holds_key OR key_until <= :now)
    ORDER BY finalized_at, id
    LIMIT :limit
)
RETURNING id, +finalized_at
