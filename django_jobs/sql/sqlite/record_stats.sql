-- Add to the statistics of this minute; a row for each kind of job and outcome.
INSERT INTO django_jobs_stat AS stat (
    minute, queue_name, name, outcome, error_class, count, run_total, run_max, wait_total, wait_max
)
SELECT substr(:now, 1, 16) || ':00.000000',
       json_extract(value, '$.queue_name'), json_extract(value, '$.name'), json_extract(value, '$.outcome'),
       json_extract(value, '$.error_class'), json_extract(value, '$.number'), json_extract(value, '$.run_total'),
       json_extract(value, '$.run_max'), json_extract(value, '$.wait_total'), json_extract(value, '$.wait_max')
FROM json_each(:rows)
WHERE true
ON CONFLICT (minute, queue_name, name, outcome, error_class) DO UPDATE
SET count = count + excluded.count,
    run_total = run_total + excluded.run_total,
    run_max = max(run_max, excluded.run_max),
    wait_total = wait_total + excluded.wait_total,
    wait_max = max(wait_max, excluded.wait_max)
RETURNING id
