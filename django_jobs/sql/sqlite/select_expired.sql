-- Of up to :look jobs that ended in :state, the longest ago first, those that a rule of retention lets go: of one queue,
-- or of all but the queues that have a rule of their own. Jobs of other queues may lie before them, and stay for long, so
-- what is looked at is bounded, and the caller goes on from the last one (the first row, which has no id).
-- A job that still holds its key's period is kept.
WITH looked AS MATERIALIZED (
    SELECT id, finalized_at, queue_name, holds_key AND (key_until IS NULL OR key_until > :now) AS held
    FROM django_jobs_job
    WHERE state = :state AND finalized_at IS NOT NULL
      AND (finalized_at, id) > (:after_moment, :after_id)
      AND finalized_at <= :older_than
    ORDER BY finalized_at, id
    LIMIT :look
)
SELECT * FROM (
    SELECT NULL, finalized_at, id, (SELECT count(*) FROM looked)
    FROM looked ORDER BY finalized_at DESC, id DESC LIMIT 1
)
UNION ALL
SELECT id, NULL, NULL, NULL FROM looked
WHERE NOT held
  AND (:queue_name IS NULL OR queue_name = :queue_name)
  AND queue_name NOT IN (SELECT value FROM json_each(:other_than))
