-- Those of the jobs whose rows another transaction holds. What this statement locks it lets go of at once.
SELECT wanted.id
FROM unnest((SELECT :ids::bigint[])) AS wanted (id)
LEFT JOIN LATERAL (
    SELECT id FROM django_jobs_job WHERE id = wanted.id FOR UPDATE SKIP LOCKED
) AS free ON true
WHERE free.id IS NULL AND EXISTS (SELECT FROM django_jobs_job WHERE id = wanted.id)
