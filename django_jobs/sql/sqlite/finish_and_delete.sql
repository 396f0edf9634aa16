-- Delete jobs whose end is not kept, in the transaction in which finish has just stored it: nobody has come between. One
-- that is completed and holds its key for a period is spared until that is over.
DELETE FROM django_jobs_job
WHERE id IN (SELECT value FROM json_each(:ids)) AND (NOT holds_key OR key_until <= :now)
