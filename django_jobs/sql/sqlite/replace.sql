-- Give waiting jobs new arguments and a new time. Those that wait no longer are let be and don't come back. Each row is
-- [id, args, kwargs, run_after].
UPDATE django_jobs_job
SET args = new.args,
    kwargs = new.kwargs,
    run_after = new.run_after,
    state = CASE WHEN state = 'pending' THEN 'pending' WHEN new.run_after > :now THEN 'scheduled' ELSE 'available' END
FROM (
    SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS args,
           json_extract(value, '$[2]') AS kwargs, json_extract(value, '$[3]') AS run_after
    FROM json_each(:rows)
) AS new
WHERE django_jobs_job.id = new.id AND holds_key AND state IN ('pending', 'scheduled', 'available')
RETURNING {job columns}
