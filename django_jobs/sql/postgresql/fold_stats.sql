-- Add up the statistics from :start until before :until, in the rows of the first minute.
-- gone leaves those, so that this statement does not change a row twice.
WITH gone AS (
    DELETE FROM django_jobs_stat
    WHERE minute > :start::timestamptz AND minute < :until::timestamptz
    RETURNING queue_name, name, outcome, error_class, count, run_total, run_max, wait_total, wait_max
), folded AS (
    INSERT INTO django_jobs_stat AS stat (
        minute, queue_name, name, outcome, error_class, count, run_total, run_max, wait_total, wait_max
    )
    SELECT :start::timestamptz, queue_name, name, outcome, error_class,
           sum(count), sum(run_total), max(run_max), sum(wait_total), max(wait_max)
    FROM gone
    GROUP BY queue_name, name, outcome, error_class
    ORDER BY queue_name COLLATE "C", name COLLATE "C", outcome COLLATE "C", error_class COLLATE "C"
    ON CONFLICT (minute, queue_name, name, outcome, error_class) DO UPDATE
    SET count = stat.count + excluded.count,
        run_total = stat.run_total + excluded.run_total,
        run_max = GREATEST(stat.run_max, excluded.run_max),
        wait_total = stat.wait_total + excluded.wait_total,
        wait_max = GREATEST(stat.wait_max, excluded.wait_max)
)
SELECT count(*) FROM gone
