-- Give the leadership up, so that the next one need not wait for the lease. Only the holder can; the term is kept, so
-- that terms never repeat.
UPDATE django_jobs_leadership
SET expires_at = LEAST(expires_at, COALESCE(:now::timestamptz, statement_timestamp())), holder = ''
WHERE name = :name AND holder = :holder
RETURNING name, holder, term, expires_at
