-- Delete statistics after the moment :after and from more than :older_than seconds ago, the oldest first, :limit rows at
-- most.
DELETE FROM django_jobs_stat
WHERE id = ANY (ARRAY(
    SELECT id FROM django_jobs_stat
    WHERE minute > :after::timestamptz
      AND minute < COALESCE(:now::timestamptz, statement_timestamp()) - make_interval(secs => :older_than::float8)
    ORDER BY minute, queue_name, name, outcome, error_class
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
))
RETURNING id
