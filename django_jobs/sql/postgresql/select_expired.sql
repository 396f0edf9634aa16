-- Of up to :look jobs that ended in :state, the longest ago first, those that a rule of retention lets go: of one queue,
-- or of all but the queues that have a rule of their own. Jobs of other queues may lie before them, and stay for long, so
-- what is looked at is bounded, and the caller goes on from the last one (the first row, which has no id).
-- A job that still holds its key's period is kept.
WITH looked AS MATERIALIZED (
    SELECT id, finalized_at, queue_name,
           COALESCE(holds_key AND (key_until IS NULL OR key_until > COALESCE(:now::timestamptz, statement_timestamp())),
                    false) AS held
    FROM django_jobs_job
    WHERE state = :state AND finalized_at IS NOT NULL
      AND (finalized_at, id) > (:after_moment::timestamptz, :after_id::bigint)
      AND finalized_at
          <= COALESCE(:now::timestamptz, statement_timestamp()) - make_interval(secs => :older_than::float8)
    ORDER BY state, finalized_at, id
    LIMIT (SELECT :look::bigint)
)
(SELECT NULL::bigint, finalized_at, id, (SELECT count(*) FROM looked)
 FROM looked ORDER BY finalized_at DESC, id DESC LIMIT 1)
UNION ALL
SELECT id, NULL::timestamptz, NULL::bigint, NULL::bigint FROM looked
WHERE NOT held
  AND (:queue_name::text IS NULL OR queue_name = :queue_name::text)
  AND queue_name <> ALL (:other_than::text[])
