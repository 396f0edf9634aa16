-- Merge patches into the metadata of running jobs: each top-level key of a patch replaces the job's own. Where that would
-- be more than :most bytes of JSON, nothing is changed. Each row is [id, claims, patch]. The fence is that of finish.
-- django_jobs_merge is a function of ours, which each connection is given: SQLite's own json_each turns numbers into its
-- own (2**70 into a float of 15 digits), and json_patch merges deeper than the top and deletes what is null.
UPDATE django_jobs_job
SET metadata = django_jobs_merge(django_jobs_job.metadata, patch.metadata, :most)
FROM (
    SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS claims,
           json_extract(value, '$[2]') AS metadata
    FROM json_each(:rows)
) AS patch
WHERE django_jobs_job.id = patch.id AND django_jobs_job.claims = patch.claims AND +django_jobs_job.state = 'running'
RETURNING {job columns}
