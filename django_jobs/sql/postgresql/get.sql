-- Jobs as they are, by id.
SELECT {job columns} FROM django_jobs_job WHERE id = ANY (:ids::bigint[]) ORDER BY id
