-- End the claims of workers that are lost or stopped (or, with :worker_id, of that one, as it stops), :limit at most;
-- with :ids, only those among them.
-- gone walks the distinct workers of running jobs in the gaps between the ids of live workers, one index descent each: so
-- it finds those without a row too, and passes over all entries of the live ones. While somebody's transaction is open
-- for long, the index keeps an entry for each job that a worker has claimed, and to pass those one by one is to read all.
-- LATERAL checks the row again under its lock and returns it as locked: a job that completed or was claimed again
-- meanwhile is let be, a cancel request of this very moment counts.
-- Earlier errors are copied, and their last number is read, as text: the operators -> and ->> fail on escapes that no
-- text can hold (\u0000), and one such row would keep all others from being rescued.
-- A rescued job spends its attempt. It comes back after a random part of :spread seconds, so that a job that kills
-- its process does not meet the same neighbours again and again.
WITH RECURSIVE gone AS (
    SELECT job.worker_id, gap.below
    FROM (
        SELECT id AS above, lead(id, 1, 9223372036854775807) OVER (ORDER BY id) AS below
        FROM (
            SELECT id FROM django_jobs_worker WHERE lost_at IS NULL AND stopped_at IS NULL
            UNION ALL
            SELECT '-9223372036854775808'::bigint
        ) AS live
    ) AS gap
    CROSS JOIN LATERAL (
        SELECT worker_id FROM django_jobs_job
        WHERE state = 'running' AND worker_id > gap.above AND worker_id < gap.below
        ORDER BY worker_id LIMIT 1
    ) AS job
    WHERE gap.above + 1 < gap.below
    UNION ALL
    SELECT job.worker_id, gone.below
    FROM gone CROSS JOIN LATERAL (
        SELECT worker_id FROM django_jobs_job
        WHERE state = 'running' AND worker_id > gone.worker_id AND worker_id < gone.below
        ORDER BY worker_id LIMIT 1
    ) AS job
), lost AS MATERIALIZED (
    SELECT worker_id FROM gone WHERE :worker_id::bigint IS NULL
    UNION ALL
    SELECT :worker_id::bigint WHERE :worker_id::bigint IS NOT NULL
), held AS MATERIALIZED (
    SELECT job.*, COALESCE(:now::timestamptz, statement_timestamp()) AS now
    FROM lost CROSS JOIN LATERAL (
        SELECT id, attempt, attempted_at, worker_id,
               CASE WHEN json_typeof(errors) = 'array' THEN errors ELSE '[]'::json END AS errors,
               CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'
                    WHEN attempt >= max_attempts THEN 'failed'
                    WHEN :spread::float8 > 0 THEN 'scheduled' ELSE 'available' END AS next_state
        FROM django_jobs_job
        WHERE state = 'running' AND worker_id = lost.worker_id
          AND (:ids::bigint[] IS NULL OR id = ANY (:ids::bigint[]))
        ORDER BY id LIMIT :limit
        FOR UPDATE SKIP LOCKED
    ) AS job
    LIMIT :limit
)
UPDATE django_jobs_job AS job
SET state = held.next_state,
    run_after = CASE WHEN held.next_state = 'scheduled' THEN held.now + make_interval(secs => random() * :spread::float8)
                     ELSE job.run_after END,
    finalized_at = CASE WHEN held.next_state IN ('cancelled', 'failed') THEN held.now END,
    holds_key = job.holds_key AND held.next_state IN ('scheduled', 'available'),
    error_class = :error_class::text,
    errors = (
        SELECT json_agg(entry ORDER BY position)
        FROM (
            SELECT value AS entry, position
            FROM json_array_elements(held.errors) WITH ORDINALITY AS earlier (value, position)
            WHERE position <> 2 OR json_array_length(held.errors) < :most_errors
            UNION ALL
            SELECT json_build_object(
                       'number', 1 + COALESCE((
                           SELECT substring(value::text FROM '"number"\s*:\s*([0-9]{1,9})(?![0-9])')::integer
                           FROM json_array_elements(held.errors) WITH ORDINALITY AS earlier (value, position)
                           ORDER BY position DESC LIMIT 1
                       ), 0),
                       'attempt', held.attempt,
                       'at', to_char(held.now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'),
                       'attempted_at',
                       to_char(held.attempted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'),
                       'worker', held.worker_id, 'class', :error_class::text, 'message', :message::text, 'traceback', ''
                   ), 1000000
        ) AS entries
    )
FROM held
WHERE job.id = held.id
RETURNING {job columns of job},
    CASE WHEN held.next_state IN ('scheduled', 'available') AND :notify::boolean THEN
        pg_notify('django_jobs', CASE WHEN held.next_state = 'available' THEN '+' || job.queue_name ELSE '@' END)
    END
