-- The hours that were over more than :older_than seconds ago and are kept by the minute, from the hour :after on: one
-- index descent for each hour, and one to see whether it has minutes.
WITH RECURSIVE ended AS MATERIALIZED (
    SELECT COALESCE(:now::timestamptz, statement_timestamp()) - make_interval(hours => 1, secs => :older_than::float8)
        AS last
), hours AS (
    SELECT (SELECT date_trunc('hour', minute, 'UTC') FROM django_jobs_stat
            WHERE minute >= :after::timestamptz ORDER BY minute LIMIT 1) AS hour
    UNION ALL
    SELECT (SELECT date_trunc('hour', minute, 'UTC') FROM django_jobs_stat
            WHERE minute >= hours.hour + interval '1 hour' ORDER BY minute LIMIT 1)
    FROM hours, ended WHERE hours.hour <= ended.last
)
SELECT hour FROM hours, ended
WHERE hour <= ended.last AND EXISTS (
    SELECT FROM django_jobs_stat WHERE minute > hour AND minute < hour + interval '1 hour'
)
ORDER BY hour
