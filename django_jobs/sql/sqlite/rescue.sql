-- End the claims of workers that are lost or stopped (or, with :worker_id, of that one, as it stops), :limit at most;
-- with :ids, only those among them.
-- holders walks the distinct workers of running jobs, one index descent each; a worker without a row is lost too.
-- A rescued job spends its attempt. It comes back after a random part of :spread seconds, so that a job that kills
-- its process does not meet the same neighbours again and again.
WITH RECURSIVE holders AS (
    SELECT min(worker_id) AS worker_id FROM django_jobs_job WHERE state = 'running'
    UNION ALL
    SELECT (SELECT min(job.worker_id) FROM django_jobs_job AS job
            WHERE job.state = 'running' AND job.worker_id > holders.worker_id)
    FROM holders WHERE holders.worker_id IS NOT NULL
), lost AS (
    SELECT worker_id FROM holders
    WHERE worker_id IS NOT NULL AND :worker_id IS NULL AND NOT EXISTS (
        SELECT 1 FROM django_jobs_worker AS worker
        WHERE worker.id = holders.worker_id AND worker.lost_at IS NULL AND worker.stopped_at IS NULL
    )
    UNION ALL
    SELECT :worker_id WHERE :worker_id IS NOT NULL
)
UPDATE django_jobs_job
SET state = held.next_state,
    run_after = CASE WHEN held.next_state = 'scheduled'
                     THEN strftime('%Y-%m-%d %H:%M:%f000', :now,
                                   (abs(random() % 1000000) / 1000000.0 * :spread) || ' seconds')
                     ELSE run_after END,
    finalized_at = CASE WHEN held.next_state IN ('cancelled', 'failed') THEN :now END,
    holds_key = holds_key AND held.next_state IN ('scheduled', 'available'),
    error_class = :error_class,
    errors = json_insert(
        CASE WHEN json_array_length(held.earlier) < :most_errors THEN held.earlier
             ELSE json_remove(held.earlier, '$[1]') END,
        '$[#]',
        json_object(
            'number', 1 + COALESCE(CAST(json_extract(held.earlier, '$[#-1].number') AS INTEGER), 0),
            'attempt', attempt,
            'at', replace(:now, ' ', 'T') || '+00:00',
            'attempted_at', replace(attempted_at, ' ', 'T') || '+00:00',
            'worker', worker_id, 'class', :error_class, 'message', :message, 'traceback', ''
        )
    )
FROM (
    SELECT job.id AS held_id,
           CASE WHEN json_valid(job.errors) THEN
               CASE WHEN json_type(job.errors) = 'array' THEN job.errors ELSE '[]' END
           ELSE '[]' END AS earlier,
           CASE WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
                WHEN job.attempt >= job.max_attempts THEN 'failed'
                WHEN :spread > 0 THEN 'scheduled' ELSE 'available' END AS next_state
    FROM lost CROSS JOIN django_jobs_job AS job
    WHERE job.state = 'running' AND job.worker_id = lost.worker_id
      AND (:ids IS NULL OR job.id IN (SELECT value FROM json_each(:ids)))
    ORDER BY job.worker_id, job.id
    LIMIT :limit
) AS held
WHERE django_jobs_job.id = held.held_id
RETURNING {job columns}
