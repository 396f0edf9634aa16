-- Take workers whose lease ran out for lost. From here on their heartbeat finds no row, and they learn it.
-- So are those whose last heartbeat lies beyond :future: since then the clock was set back, and who lives has renewed its
-- lease (the caller waits for a full one after it has noticed).
-- :witness is the worker that says so, if one does. When its own lease is over as well, nobody is lost: the host stood
-- still, and no worker could renew a lease meanwhile.
UPDATE django_jobs_worker
SET lost_at = :now
WHERE lost_at IS NULL AND stopped_at IS NULL AND (expires_at < :now OR heartbeat_at > :future)
    AND (:witness IS NULL OR EXISTS (
        SELECT 1 FROM django_jobs_worker AS witness
        WHERE witness.id = :witness AND witness.lost_at IS NULL AND witness.expires_at >= :now
            AND witness.heartbeat_at <= :now
    ))
RETURNING {worker columns}
