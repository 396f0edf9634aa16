-- Take workers whose lease ran out for lost. From here on their heartbeat finds no row, and they learn it.
-- The lease is compared again under the row's lock: a heartbeat of this very moment wins.
-- So are those whose last heartbeat lies in the future, by :future seconds or more: since then the clock was set back, and
-- who lives has renewed its lease (the caller waits for a full one after it has noticed).
-- :witness is the worker that says so, if one does. When its own lease is over as well, nobody is lost: the host, the
-- server or the line stood still since this statement was sent, and no worker could renew a lease meanwhile.
UPDATE django_jobs_worker
SET lost_at = COALESCE(:now::timestamptz, statement_timestamp())
WHERE id = ANY (ARRAY(
    SELECT id FROM django_jobs_worker
    WHERE lost_at IS NULL AND stopped_at IS NULL
      AND (expires_at < COALESCE(:now::timestamptz, statement_timestamp())
           OR heartbeat_at > COALESCE(:now::timestamptz, statement_timestamp()) + make_interval(secs => :future::float8))
      AND (:witness::bigint IS NULL OR EXISTS (
          SELECT FROM django_jobs_worker AS witness
          WHERE witness.id = :witness AND witness.lost_at IS NULL
            AND witness.expires_at >= COALESCE(:now::timestamptz, statement_timestamp())
            AND witness.heartbeat_at <= COALESCE(:now::timestamptz, statement_timestamp())
      ))
    ORDER BY id
    FOR UPDATE SKIP LOCKED
))
RETURNING {worker columns}
