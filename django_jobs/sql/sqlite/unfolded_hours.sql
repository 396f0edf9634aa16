-- The hours that were over before the moment :older_than and are kept by the minute, from the hour :after on: one index
-- descent for each hour, and one to see whether it has minutes.
WITH RECURSIVE hours AS (
    SELECT (SELECT substr(min(minute), 1, 13) FROM django_jobs_stat WHERE minute >= :after) AS hour
    UNION ALL
    SELECT (SELECT substr(min(minute), 1, 13) FROM django_jobs_stat WHERE minute >= hours.hour || ':59:59')
    FROM hours WHERE hours.hour || ':59:59.999999' < :older_than
)
SELECT hour || ':00:00.000000' FROM hours
WHERE hour || ':59:59.999999' < :older_than AND EXISTS (
    SELECT 1 FROM django_jobs_stat WHERE minute > hour || ':00:00.000000' AND minute < hour || ':59:59'
)
ORDER BY hour
