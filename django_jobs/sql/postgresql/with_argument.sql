-- Of the jobs with these ids, those whose arguments have :text somewhere in their JSON. Arguments have no index, so the
-- caller bounds how many it asks of, and looks at those found more closely.
SELECT job.id
FROM unnest((SELECT :ids::bigint[])) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT id, args, kwargs FROM django_jobs_job WHERE id = wanted.id OFFSET 0
) AS job
WHERE position(:text::text IN job.args::text) > 0 OR position(:text::text IN job.kwargs::text) > 0
