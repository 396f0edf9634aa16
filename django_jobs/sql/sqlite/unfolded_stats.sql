-- The spans of :step seconds that were over at the moment :older_than and have statistics of less than that, from the
-- moment :after on: one index descent for each span, and one to see whether it has finer rows.
WITH RECURSIVE spans AS (
    SELECT (SELECT CAST(strftime('%s', min(minute)) AS INTEGER) / :step * :step FROM django_jobs_stat
            WHERE minute >= :after) AS start
    UNION ALL
    SELECT (SELECT CAST(strftime('%s', min(minute)) AS INTEGER) / :step * :step FROM django_jobs_stat
            WHERE minute >= strftime('%Y-%m-%d %H:%M:%S.000000', spans.start + :step, 'unixepoch'))
    FROM spans
    WHERE strftime('%Y-%m-%d %H:%M:%S.000000', spans.start + :step, 'unixepoch') <= :older_than
)
SELECT strftime('%Y-%m-%d %H:%M:%S.000000', start, 'unixepoch') FROM spans
WHERE strftime('%Y-%m-%d %H:%M:%S.000000', start + :step, 'unixepoch') <= :older_than AND EXISTS (
    SELECT 1 FROM django_jobs_stat
    WHERE minute > strftime('%Y-%m-%d %H:%M:%S.000000', spans.start, 'unixepoch')
      AND minute < strftime('%Y-%m-%d %H:%M:%S.000000', spans.start + :step, 'unixepoch')
)
ORDER BY start
