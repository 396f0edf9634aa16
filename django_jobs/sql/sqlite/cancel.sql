-- Cancel jobs: a waiting one at once, a running one by request; a finished one stays as it is.
-- All of them come back as they now are, so two operators who cancel at once see the same; and whether they ended by it.
UPDATE django_jobs_job
SET state = CASE WHEN state IN ('pending', 'scheduled', 'available') THEN 'cancelled' ELSE state END,
    finalized_at = CASE WHEN state IN ('pending', 'scheduled', 'available') THEN :now ELSE finalized_at END,
    holds_key = holds_key AND state NOT IN ('pending', 'scheduled', 'available'),
    cancel_requested_at = CASE WHEN state IN ('pending', 'scheduled', 'available', 'running')
                               THEN COALESCE(cancel_requested_at, :now) ELSE cancel_requested_at END
WHERE id IN (SELECT value FROM json_each(:ids))
RETURNING {job columns}, state = 'cancelled' AND finalized_at = :now
