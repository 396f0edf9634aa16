-- What a search found: the jobs that match, and the last one looked at, from which the next statement goes on. One row at
-- least where anything was looked at; a tag was compared as text, and is exactly by the caller.
SELECT last.number, last.rank, last.moment, last.id, last.queue_name,
       matching.rank, matching.moment, matching.id, matching.queue_name,
       CASE WHEN :tag IS NOT NULL THEN matching.tags END
FROM (SELECT * FROM numbered ORDER BY number DESC LIMIT 1) AS last LEFT JOIN matching ON true
ORDER BY matching.number
