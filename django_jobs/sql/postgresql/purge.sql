-- Delete jobs that ended in :state at least :older_than seconds ago (0: this very moment included), :limit at most.
-- A batch goes on where the one before it ended: while somebody's transaction is open for long, the index keeps an entry
-- for each job that was deleted, and to begin at its beginning is to read them all.
-- The state is checked again under the lock: a retry of the same moment wins. Ids and times only come back: nobody reads
-- the rest, and arguments can be large. A job that holds its key for a period is spared until that is over.
DELETE FROM django_jobs_job
WHERE id = ANY (ARRAY(
    SELECT id FROM django_jobs_job
    WHERE state = :state AND finalized_at IS NOT NULL
      AND (finalized_at, id) > (:after_moment::timestamptz, :after_id::bigint)
      AND (NOT holds_key OR key_until <= COALESCE(:now::timestamptz, statement_timestamp()))
      AND finalized_at
          <= COALESCE(:now::timestamptz, statement_timestamp()) - make_interval(secs => :older_than::float8)
    ORDER BY state, finalized_at, id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
))
RETURNING id, finalized_at
