-- Of the jobs with these ids, those whose arguments have :text somewhere in their JSON. Arguments have no index, so the
-- caller bounds how many it asks of, and looks at those found more closely.
SELECT job.id
FROM json_each(:ids) AS wanted CROSS JOIN django_jobs_job AS job ON job.id = wanted.value
WHERE instr(job.args, :text) > 0 OR instr(job.kwargs, :text) > 0
