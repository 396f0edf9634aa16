-- The :most dead letters that ended last, by name and error class.
-- (SELECT :most) hides the limit from the planner. It takes it for a small part of the rows, and so reads them in the
-- order of the index; where statistics are stale it would else think it could as well read them all, and sort them.
SELECT name, COALESCE(error_class, ''), count(*), min(finalized_at), max(finalized_at) FROM (
    SELECT name, error_class, finalized_at FROM django_jobs_job WHERE state = 'failed' AND finalized_at IS NOT NULL
    ORDER BY state DESC, finalized_at DESC, id DESC LIMIT (SELECT :most::bigint)
) AS dead
GROUP BY name, COALESCE(error_class, '')
