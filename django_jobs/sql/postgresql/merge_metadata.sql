-- Merge patches into the metadata of running jobs: each top-level key of a patch replaces the job's own. Where that would
-- be more than :most bytes of JSON, written without spaces, nothing is changed, and the row says so.
-- Built with json's functions, which copy a value's text; jsonb would change numbers (1e22, -0.0).
-- The fence, the order of locks and the forms of the arrays are those of finish. What LATERAL returns is the row as
-- locked, so a key that another transaction has just merged is kept.
WITH held AS MATERIALIZED (
    SELECT patch.id, patch.metadata AS patch, job.metadata
    FROM unnest(
        (SELECT :ids::bigint[]), (SELECT :claims::integer[]), (SELECT :patches::json[])
    ) AS patch (id, claims, metadata)
    CROSS JOIN LATERAL (
        SELECT state, claims, CASE WHEN json_typeof(metadata) = 'object' THEN metadata ELSE '{}'::json END AS metadata
        FROM django_jobs_job WHERE id = patch.id OFFSET 0 FOR UPDATE
    ) AS job
    WHERE job.claims = patch.claims AND job.state = 'running'
), merged AS MATERIALIZED (
    SELECT held.id, whole.metadata, whole.size <= :most::integer AS fits
    FROM held CROSS JOIN LATERAL (
        SELECT COALESCE(json_object_agg(entry.key, entry.value ORDER BY entry.part, entry.position), '{}'::json)
                   AS metadata,
               COALESCE(sum(octet_length(to_json(entry.key)::text) + octet_length(entry.value::text) + 2), 1) + 1
                   AS size
        FROM (
            SELECT 1 AS part, before.position, before.key, before.value
            FROM json_each(held.metadata) WITH ORDINALITY AS before (key, value, position)
            WHERE NOT EXISTS (SELECT FROM json_object_keys(held.patch) AS changed (key) WHERE changed.key = before.key)
            UNION ALL
            SELECT 2, change.position, change.key, change.value
            FROM json_each(held.patch) WITH ORDINALITY AS change (key, value, position)
        ) AS entry
    ) AS whole
)
UPDATE django_jobs_job AS job
SET metadata = CASE WHEN merged.fits THEN merged.metadata ELSE job.metadata END
FROM merged
WHERE job.id = merged.id
RETURNING {job columns of job}, merged.fits
