-- What became of jobs from :since until before :until, by steps of :step seconds, counted from 1970, and by outcome;
-- of :queue_name and :name alone, if given.
SELECT CAST(strftime('%s', minute) AS INTEGER) / :step AS step, outcome,
       sum(count), sum(run_total), max(run_max), sum(wait_total), max(wait_max)
FROM django_jobs_stat
WHERE minute >= :since AND minute < :until
  AND (:queue_name IS NULL OR queue_name = :queue_name)
  AND (:name IS NULL OR name = :name)
GROUP BY 1, 2 ORDER BY 1, 2
