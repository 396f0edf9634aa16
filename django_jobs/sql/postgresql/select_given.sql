-- Look at the jobs with these ids.
WITH looked AS MATERIALIZED (
    SELECT 0 AS rank, NULL::timestamptz AS moment, job.*
    FROM unnest((SELECT :ids::bigint[])) AS wanted (id)
    CROSS JOIN LATERAL (SELECT {looked columns} FROM django_jobs_job WHERE id = wanted.id OFFSET 0) AS job
    LIMIT (SELECT :look::bigint)
)
{include matches}
