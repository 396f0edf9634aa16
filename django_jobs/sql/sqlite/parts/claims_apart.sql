-- The claims of complete, each with its number: :claims is an object {id: claims}, and json_each gives its keys and
-- values as they are, with no JSON to take apart. Fenced as in finish.
FROM (SELECT CAST(key AS INTEGER) AS id, value AS claims FROM json_each(:claims)) AS outcome
WHERE django_jobs_job.id = outcome.id AND django_jobs_job.claims = outcome.claims AND +django_jobs_job.state = 'running'
