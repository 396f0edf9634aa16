-- Dead letters since the statistics begin, by name and error class, those of the latest first, :most kinds at most: how
-- many since the moments :hour, :day and :week.
SELECT name, error_class,
       COALESCE(sum(count) FILTER (WHERE minute > :hour), 0),
       COALESCE(sum(count) FILTER (WHERE minute > :day), 0),
       COALESCE(sum(count) FILTER (WHERE minute > :week), 0),
       min(minute), max(minute)
FROM django_jobs_stat
WHERE outcome = 'failed'
GROUP BY name, error_class
ORDER BY max(minute) DESC, name, error_class
LIMIT :most
