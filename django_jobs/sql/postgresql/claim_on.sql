-- Claim as claim.sql does, past what the claimer knows to be claimed: while somebody's transaction is open for long, the
-- index keeps an entry for each job that was ever available, and to begin at its beginning is to read them all.
-- The parts are the whole range of priorities, the highest first: of a priority that was claimed from, what comes after
-- the last job claimed (moment and id), and the priorities in between, of which nothing is known, whole (no moment).
-- What became available again behind a mark is not seen here, so the caller begins at the beginning every so often.
-- The parts are walked one after the other, and no further than to the last job that is taken: no row is locked that is
-- not claimed.
UPDATE django_jobs_job
SET state = 'running',
    attempt = attempt + 1,
    claims = claims % 2147483647 + 1,
    attempted_at = COALESCE(:now::timestamptz, statement_timestamp()),
    worker_id = :worker_id::bigint
WHERE id = ANY (ARRAY(
    SELECT job.id
    FROM unnest(
        (SELECT :highest::smallint[]), (SELECT :lowest::smallint[]), (SELECT :moments::timestamptz[]),
        (SELECT :ids::bigint[])
    ) AS part (highest, lowest, moment, id)
    CROSS JOIN LATERAL (
        SELECT id FROM (
            SELECT id FROM django_jobs_job
            WHERE part.moment IS NULL
              AND state = 'available' AND queue_name = :queue_name
              AND priority <= part.highest AND priority >= part.lowest
            ORDER BY queue_name, priority DESC, run_after, id
            LIMIT :limit
            FOR UPDATE SKIP LOCKED
        ) AS unknown
        UNION ALL
        SELECT id FROM (
            SELECT id FROM django_jobs_job
            WHERE part.moment IS NOT NULL
              AND state = 'available' AND queue_name = :queue_name
              AND priority = part.highest AND (run_after, id) > (part.moment, part.id)
            ORDER BY queue_name, priority DESC, run_after, id
            LIMIT :limit
            FOR UPDATE SKIP LOCKED
        ) AS marked
    ) AS job
    WHERE EXISTS (
        SELECT FROM django_jobs_worker
        WHERE id = :worker_id::bigint AND lost_at IS NULL AND stopped_at IS NULL AND epoch <= :epoch
    )
    LIMIT :limit
))
RETURNING {claimed columns}
