-- The :most dead letters that ended last, by name and error class.
-- (SELECT :most) hides the limit from the planner. It takes it for a small part of the rows, and so reads them in the
-- order of the index; where statistics are stale it would else think it could as well read them all, and sort them.
-- LIMIT 20000 is beyond all that is asked for, and bounds what the planner takes for that part: of millions it would make
-- a plan so dear that it is compiled first (jit), which takes longer than the count.
SELECT name, COALESCE(error_class, ''), count(*), min(finalized_at), max(finalized_at) FROM (
    SELECT * FROM (
        SELECT name, error_class, finalized_at, id
        FROM django_jobs_job WHERE state = 'failed' AND finalized_at IS NOT NULL
        ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
    ) AS hidden ORDER BY finalized_at DESC, id DESC LIMIT 20000
) AS dead
GROUP BY name, COALESCE(error_class, '')
