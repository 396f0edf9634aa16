-- Add to the statistics of this minute; a row for each kind of job and outcome.
-- The rows are written in the order of their key, in all workers alike, so that none of them wait for each other in a
-- circle.
INSERT INTO django_jobs_stat AS stat (
    minute, queue_name, name, outcome, error_class, count, run_total, run_max, wait_total, wait_max
)
SELECT date_trunc('minute', COALESCE(:now::timestamptz, statement_timestamp()), 'UTC'),
       counted.queue_name, counted.name, counted.outcome, counted.error_class,
       counted.number, counted.run_total, counted.run_max, counted.wait_total, counted.wait_max
FROM json_to_recordset(:rows::json) AS counted (
    queue_name text, name text, outcome text, error_class text,
    number bigint, run_total float8, run_max float8, wait_total float8, wait_max float8
)
ORDER BY counted.queue_name COLLATE "C", counted.name COLLATE "C", counted.outcome COLLATE "C",
         counted.error_class COLLATE "C"
ON CONFLICT (minute, queue_name, name, outcome, error_class) DO UPDATE
SET count = stat.count + excluded.count,
    run_total = stat.run_total + excluded.run_total,
    run_max = GREATEST(stat.run_max, excluded.run_max),
    wait_total = stat.wait_total + excluded.wait_total,
    wait_max = GREATEST(stat.wait_max, excluded.wait_max)
RETURNING stat.id
