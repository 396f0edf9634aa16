-- Add up the statistics from :start until before :until, in the rows of the first minute; purge_stats then deletes the
-- others, in the same transaction.
INSERT INTO django_jobs_stat AS stat (
    minute, queue_name, name, outcome, error_class, count, run_total, run_max, wait_total, wait_max
)
SELECT :start, queue_name, name, outcome, error_class,
       sum(count), sum(run_total), max(run_max), sum(wait_total), max(wait_max)
FROM django_jobs_stat
WHERE minute > :start AND minute < :until
GROUP BY queue_name, name, outcome, error_class
ON CONFLICT (minute, queue_name, name, outcome, error_class) DO UPDATE
SET count = count + excluded.count,
    run_total = run_total + excluded.run_total,
    run_max = max(run_max, excluded.run_max),
    wait_total = wait_total + excluded.wait_total,
    wait_max = max(wait_max, excluded.wait_max)
RETURNING id
