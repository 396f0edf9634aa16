-- All schedules, or the one with the key :key.
SELECT {schedule columns} FROM django_jobs_schedule
WHERE :key IS NULL OR key = :key
ORDER BY key
