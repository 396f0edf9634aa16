-- What became of jobs from :since until before :until, by steps of :step seconds, counted from 1970, and by outcome;
-- of :queue_name and :name alone, if given.
SELECT floor(extract(epoch FROM minute) / :step::bigint)::bigint AS step, outcome,
       sum(count)::bigint, sum(run_total), max(run_max), sum(wait_total), max(wait_max)
FROM django_jobs_stat
WHERE minute >= :since::timestamptz AND minute < :until::timestamptz
  AND (:queue_name::text IS NULL OR queue_name = :queue_name::text)
  AND (:name::text IS NULL OR name = :name::text)
GROUP BY 1, 2 ORDER BY 1, 2
