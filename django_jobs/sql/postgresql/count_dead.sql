-- The :most dead letters that ended last, by name and error class.
SELECT name, COALESCE(error_class, ''), count(*), min(finalized_at), max(finalized_at) FROM (
    SELECT name, error_class, finalized_at FROM django_jobs_job WHERE state = 'failed' AND finalized_at IS NOT NULL
    ORDER BY state DESC, finalized_at DESC, id DESC LIMIT :most
) AS dead
GROUP BY name, COALESCE(error_class, '')
