-- What a search in arguments found: among how many jobs that match, where to go on (the last job that matches, if there
-- were :most, else the last one looked at), and those that have :argument somewhere in their JSON, in the order of the
-- search; without :argument the number alone. Arguments have no index, so the caller bounds how many are searched, and looks at those found more closely.
, counted AS MATERIALIZED (
    SELECT count(*) AS number, max(number) AS last FROM matching
)
SELECT counted.number, (SELECT count(*) FROM numbered), last.rank, last.moment, last.id, last.queue_name, hit.id
FROM counted
JOIN numbered AS last ON last.number = CASE WHEN counted.number >= :most THEN counted.last
                                            ELSE (SELECT max(number) FROM numbered) END
LEFT JOIN (
    SELECT matching.number, matching.id
    FROM matching CROSS JOIN LATERAL (
        SELECT args, kwargs FROM django_jobs_job WHERE id = matching.id OFFSET 0
    ) AS job
    WHERE :argument::text IS NOT NULL
      AND (position(:argument::text IN job.args::text) > 0 OR position(:argument::text IN job.kwargs::text) > 0)
) AS hit ON true
ORDER BY hit.number
