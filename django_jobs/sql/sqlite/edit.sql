-- An operator's edit of one waiting job: arguments, queue, priority, time, most attempts; null leaves it. Only if it has
-- the arguments that the operator has seen, and still waits: nothing comes back if it was claimed, has ended, or was
-- edited by somebody else meanwhile.
UPDATE django_jobs_job
SET args = COALESCE(:args, args),
    kwargs = COALESCE(:kwargs, kwargs),
    queue_name = COALESCE(:queue_name, queue_name),
    priority = COALESCE(:priority, priority),
    max_attempts = COALESCE(:max_attempts, max_attempts),
    run_after = COALESCE(:run_after, run_after),
    state = CASE WHEN state = 'pending' OR :run_after IS NULL THEN state
                 WHEN :run_after > :now THEN 'scheduled' ELSE 'available' END
WHERE id = :id
  AND state IN ('pending', 'scheduled', 'available')
  AND args = :seen_args AND kwargs = :seen_kwargs
  AND attempt < COALESCE(:max_attempts, max_attempts)
RETURNING {job columns}
