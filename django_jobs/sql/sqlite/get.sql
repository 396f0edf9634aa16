-- Jobs as they are, by id.
SELECT {job columns} FROM django_jobs_job WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id
