-- An operator's edit of one waiting job: arguments, queue, priority, time, most attempts; null leaves it. Only if it has
-- the arguments that the operator has seen, and still waits: nothing comes back if it was claimed, has ended, or was
-- edited by somebody else meanwhile. (PostgreSQL looks at the conditions again on the row as locked.)
UPDATE django_jobs_job AS job
SET args = COALESCE(:args::json, job.args),
    kwargs = COALESCE(:kwargs::json, job.kwargs),
    queue_name = COALESCE(:queue_name::text, job.queue_name),
    priority = COALESCE(:priority::smallint, job.priority),
    max_attempts = COALESCE(:max_attempts::smallint, job.max_attempts),
    run_after = COALESCE(:run_after::timestamptz, job.run_after),
    state = CASE WHEN job.state = 'pending' OR :run_after::timestamptz IS NULL THEN job.state
                 WHEN :run_after::timestamptz > COALESCE(:now::timestamptz, statement_timestamp()) THEN 'scheduled'
                 ELSE 'available' END
WHERE id = :id::bigint
  AND state IN ('pending', 'scheduled', 'available')
  AND args::text = :seen_args::text AND kwargs::text = :seen_kwargs::text
  AND attempt < COALESCE(:max_attempts::smallint, job.max_attempts)
RETURNING {job columns},
    CASE WHEN :notify::boolean AND state <> 'pending' THEN
        pg_notify('django_jobs', CASE WHEN state = 'available' THEN '+' || queue_name ELSE '@' END)
    END
