-- Dead letters since the statistics begin, by name and error class, those of the latest first, :most kinds at most: how
-- many within the last :hour, :day and :week seconds.
SELECT name, error_class,
       COALESCE(sum(count) FILTER (WHERE minute > now - make_interval(secs => :hour::float8)), 0)::bigint,
       COALESCE(sum(count) FILTER (WHERE minute > now - make_interval(secs => :day::float8)), 0)::bigint,
       COALESCE(sum(count) FILTER (WHERE minute > now - make_interval(secs => :week::float8)), 0)::bigint,
       min(minute), max(minute)
FROM django_jobs_stat, (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
WHERE outcome = 'failed'
GROUP BY name, error_class
ORDER BY max(minute) DESC, name, error_class
LIMIT :most
