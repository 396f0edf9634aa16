-- Make or change a queue's row. :pause true or false sets it, null leaves it; :metadata null leaves it.
INSERT INTO django_jobs_queue AS queue (name, paused_at, metadata, created_at, updated_at)
SELECT :name, CASE WHEN :pause::boolean THEN now END, COALESCE(:metadata::json, '{}'::json), now, now
FROM (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
ON CONFLICT (name) DO UPDATE
SET paused_at = CASE WHEN :pause::boolean IS NULL THEN queue.paused_at
                     WHEN :pause::boolean THEN COALESCE(queue.paused_at, excluded.paused_at) END,
    metadata = COALESCE(:metadata::json, queue.metadata),
    updated_at = excluded.updated_at
RETURNING name, paused_at, metadata
