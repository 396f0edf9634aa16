-- Insert many jobs; each row is
-- [name, queue, priority, most attempts, run_after, args, kwargs, pending, timeout, tags], where what is null or false
-- at the end is left out.
-- json_each gives the rows, and AUTOINCREMENT numbers them, in the order given: ids ascend in it.
INSERT INTO django_jobs_job (
    name, queue_name, priority, max_attempts, run_after, args, kwargs, state, attempt, claims, created_at, holds_key,
    timeout, tags
)
SELECT
    json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
    json_extract(value, '$[4]'), json_extract(value, '$[5]'), json_extract(value, '$[6]'),
    CASE WHEN json_extract(value, '$[7]') THEN 'pending'
         WHEN json_extract(value, '$[4]') > :now THEN 'scheduled' ELSE 'available' END,
    0, 0, :now, 0, json_extract(value, '$[8]'), json_extract(value, '$[9]')
FROM json_each(:rows)
WHERE true
RETURNING id, run_after, created_at
