-- The end of every select_*: of the rows that were looked at, those that match, :most at most, and the last one looked
-- at, from which the next statement goes on. One row at least where anything was looked at; a tag is compared as text
-- here, and exactly by the caller.
, numbered AS MATERIALIZED (
    SELECT row_number() OVER () AS number, looked.* FROM looked
), matching AS MATERIALIZED (
    SELECT * FROM numbered
    WHERE (:state IS NULL OR state = :state)
      AND (:queue_name IS NULL OR queue_name = :queue_name)
      AND (:name IS NULL OR name = :name)
      AND (:error_class IS NULL OR error_class = :error_class)
      AND (:claimed_by IS NULL OR worker_id = :claimed_by)
      AND (:created_before IS NULL OR created_at < :created_before)
      AND (:created_after IS NULL OR created_at >= :created_after)
      AND (:finished_for IS NULL OR finalized_at <= :finished_for)
      AND (:finished_after IS NULL OR finalized_at >= :finished_after)
      AND (:priority IS NULL OR priority = :priority)
      AND (:unique_key IS NULL OR unique_key = :unique_key)
      AND (:tag IS NULL OR instr(tags, :tag) > 0)
      AND (:word IS NULL OR instr(name, :word) > 0 OR unique_key = :word OR CASE
           WHEN json_valid(tags) AND json_type(tags) = 'array'
           THEN EXISTS (SELECT 1 FROM json_each(tags) WHERE value = :word) END)
    ORDER BY number
    LIMIT :most
)
SELECT last.number, last.rank, last.moment, last.id, last.queue_name,
       matching.rank, matching.moment, matching.id, matching.queue_name,
       CASE WHEN :tag IS NOT NULL THEN matching.tags END
FROM (SELECT * FROM numbered ORDER BY number DESC LIMIT 1) AS last LEFT JOIN matching ON true
ORDER BY matching.number
