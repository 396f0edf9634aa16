-- The spans of :step seconds that were over more than :older_than seconds ago and have statistics of less than that, from
-- the moment :after on: one index descent for each span, and one to see whether it has finer rows.
WITH RECURSIVE given AS MATERIALIZED (
    SELECT make_interval(secs => :step::float8) AS step,
           COALESCE(:now::timestamptz, statement_timestamp())
           - make_interval(secs => :step::float8 + :older_than::float8) AS last
), spans AS (
    SELECT (SELECT date_bin(step, minute, timestamptz '1970-01-01 00:00+00') FROM django_jobs_stat
            WHERE minute >= :after::timestamptz ORDER BY minute LIMIT 1) AS start
    FROM given
    UNION ALL
    SELECT (SELECT date_bin(given.step, minute, timestamptz '1970-01-01 00:00+00') FROM django_jobs_stat
            WHERE minute >= spans.start + given.step ORDER BY minute LIMIT 1)
    FROM spans, given WHERE spans.start <= given.last
)
SELECT start FROM spans, given
WHERE start <= given.last AND EXISTS (
    SELECT FROM django_jobs_stat WHERE minute > start AND minute < start + given.step
)
ORDER BY start
