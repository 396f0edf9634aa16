-- Make or change a queue's row. :pause 1 or 0 sets it, null leaves it; :metadata null leaves it.
INSERT INTO django_jobs_queue AS queue (name, paused_at, metadata, created_at, updated_at)
VALUES (:name, CASE WHEN :pause THEN :now END, COALESCE(:metadata, '{}'), :now, :now)
ON CONFLICT (name) DO UPDATE
SET paused_at = CASE WHEN :pause IS NULL THEN queue.paused_at
                     WHEN :pause THEN COALESCE(queue.paused_at, excluded.paused_at) END,
    metadata = COALESCE(:metadata, queue.metadata),
    updated_at = excluded.updated_at
RETURNING name, +paused_at, metadata
