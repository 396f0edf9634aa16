-- Delete jobs by id: whatever does not run, or, with :state, only what ended in it (a retry that came before wins) and
-- holds its key no longer. Those deleted come back as they were.
DELETE FROM django_jobs_job
WHERE id IN (SELECT value FROM json_each(:ids))
  AND CASE WHEN :state IS NULL THEN state <> 'running'
           ELSE state = :state AND (NOT holds_key OR key_until <= :now) END
RETURNING {finish columns}
