-- Take workers whose lease ran out for lost. From here on their heartbeat finds no row, and they learn it.
-- :witness is the worker that says so, if one does. When its own lease is over as well, nobody is lost: the host stood
-- still, and no worker could renew a lease meanwhile.
UPDATE django_jobs_worker
SET lost_at = :now
WHERE lost_at IS NULL AND stopped_at IS NULL AND expires_at < :now
    AND (:witness IS NULL OR EXISTS (
        SELECT 1 FROM django_jobs_worker AS witness
        WHERE witness.id = :witness AND witness.lost_at IS NULL AND witness.expires_at >= :now
    ))
RETURNING {worker columns}
