-- Delete statistics after the moment :after and before :older_than, the oldest first, :limit rows at most.
DELETE FROM django_jobs_stat
WHERE id IN (
    SELECT id FROM django_jobs_stat
    WHERE minute > :after AND minute < :older_than
    ORDER BY minute, queue_name, name, outcome, error_class
    LIMIT :limit
)
RETURNING id
