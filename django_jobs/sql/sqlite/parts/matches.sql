-- The end of every select_*: of the rows that were looked at, those that match, :most at most; and then what is told of
-- them, which is chosen when the statement is read.
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
{include ending}
