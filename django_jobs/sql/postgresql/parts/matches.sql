-- The end of every select_*: of the rows that were looked at, those that match, :most at most; and then what is told of
-- them, which is chosen when the statement is read.
-- The statements bound what they look at twice. (SELECT :look) hides the limit from the planner, which takes it for a
-- tenth of the rows, and so reads them in the order of the index whatever the statistics say; LIMIT 20000 around it, beyond
-- all that is asked for, bounds that part: of millions it would make a plan so dear that it is compiled first (jit), which
-- takes longer than the search.
-- Tags are compared as JSON with a word, too: made into text, one with an escape that no text can hold (\u0000) would fail
-- the search of all.
, numbered AS MATERIALIZED (
    SELECT row_number() OVER () AS number, looked.* FROM looked
), matching AS MATERIALIZED (
    SELECT * FROM numbered
    WHERE (:state::text IS NULL OR state = :state::text)
      AND (:queue_name::text IS NULL OR queue_name = :queue_name::text)
      AND (:name::text IS NULL OR name = :name::text)
      AND (:error_class::text IS NULL OR error_class = :error_class::text)
      AND (:claimed_by::bigint IS NULL OR worker_id = :claimed_by::bigint)
      AND (:created_before::timestamptz IS NULL OR created_at < :created_before::timestamptz)
      AND (:created_after::timestamptz IS NULL OR created_at >= :created_after::timestamptz)
      AND (:finished_for::float8 IS NULL OR finalized_at
           <= COALESCE(:now::timestamptz, statement_timestamp()) - make_interval(secs => :finished_for::float8))
      AND (:finished_after::timestamptz IS NULL OR finalized_at >= :finished_after::timestamptz)
      AND (:priority::smallint IS NULL OR priority = :priority::smallint)
      AND (:unique_key::text IS NULL OR unique_key = :unique_key::text)
      AND (:tag::text IS NULL OR position(:tag::text IN tags::text) > 0)
      AND (:word::text IS NULL OR position(:word::text IN name) > 0 OR unique_key = :word::text OR CASE
           WHEN json_typeof(tags) = 'array'
           THEN EXISTS (SELECT FROM json_array_elements(tags) AS each WHERE each::text = :word_as_tag::text) END)
    ORDER BY number
    LIMIT :most
)
{include ending}
