-- Insert many jobs, those with a unique key only if no job holds it; the jobs that hold the other keys come along. Each
-- row is [name, queue, priority, most attempts, run_after, args, kwargs, pending, timeout, tags, unique key, key until,
-- metadata];
-- no key is there twice. How a new row is told from one that was there: as in insert_unique.
INSERT INTO django_jobs_job (
    name, queue_name, priority, max_attempts, run_after, args, kwargs, state, attempt, claims, created_at, timeout, tags,
    unique_key, holds_key, key_until, metadata
)
SELECT
    json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
    json_extract(value, '$[4]'), json_extract(value, '$[5]'), json_extract(value, '$[6]'),
    CASE WHEN json_extract(value, '$[7]') THEN 'pending'
         WHEN json_extract(value, '$[4]') > :now THEN 'scheduled' ELSE 'available' END,
    0, 0, :now, json_extract(value, '$[8]'), json_extract(value, '$[9]'),
    json_extract(value, '$[10]'), json_extract(value, '$[10]') IS NOT NULL, json_extract(value, '$[11]'),
    json_extract(value, '$[12]')
FROM json_each(:rows)
WHERE true
ON CONFLICT DO UPDATE SET claims = claims
RETURNING {job columns}, id > COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'django_jobs_job'), 0)
