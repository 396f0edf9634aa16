-- Delete jobs by id: whatever does not run, or, with :state, only what ended in it (a retry of the same moment wins) and
-- holds its key no longer. Rows are locked in the order of the ids, and looked at again under the lock. Those deleted
-- come back as they were. OFFSET 0: as in finish.
DELETE FROM django_jobs_job
WHERE id = ANY (ARRAY(
    SELECT wanted.id
    FROM unnest((SELECT :ids::bigint[])) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT state, holds_key, key_until FROM django_jobs_job WHERE id = wanted.id OFFSET 0 FOR UPDATE
    ) AS job
    WHERE CASE WHEN :state::text IS NULL THEN job.state <> 'running'
               ELSE job.state = :state::text AND (
                   NOT job.holds_key OR job.key_until <= COALESCE(:now::timestamptz, statement_timestamp())
               ) END
))
RETURNING {finish columns}
