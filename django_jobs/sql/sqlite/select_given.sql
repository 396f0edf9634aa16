-- Look at the jobs with these ids.
WITH looked AS MATERIALIZED (
    SELECT 0 AS rank, NULL AS moment, {looked columns of job}
    FROM json_each(:ids) AS wanted CROSS JOIN django_jobs_job AS job ON job.id = wanted.value
    LIMIT :look
)
{include matches}
