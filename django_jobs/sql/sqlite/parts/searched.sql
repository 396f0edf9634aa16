-- What a search in arguments found: among how many jobs that match, where to go on (the last job that matches, if there
-- were :most, else the last one looked at), and those that have :argument somewhere in their JSON, in the order of the
-- search; without :argument the number alone. Arguments have no index, so the caller bounds how many are searched, and looks at those found more closely.
, counted AS MATERIALIZED (
    SELECT count(*) AS number, max(number) AS last FROM matching
), hits AS MATERIALIZED (
    SELECT matching.number, matching.id
    FROM matching CROSS JOIN django_jobs_job AS job ON job.id = matching.id
    WHERE :argument IS NOT NULL AND (instr(job.args, :argument) > 0 OR instr(job.kwargs, :argument) > 0)
)
SELECT counted.number, (SELECT count(*) FROM numbered), last.rank, last.moment, last.id, last.queue_name, hits.id
FROM counted
JOIN numbered AS last ON last.number = CASE WHEN counted.number >= :most THEN counted.last
                                            ELSE (SELECT max(number) FROM numbered) END
LEFT JOIN hits ON true
ORDER BY hits.number
