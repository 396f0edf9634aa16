-- Insert many jobs; each row is
-- [name, queue, priority, most attempts, run_after, args, kwargs, pending, timeout, tags, metadata], where what is null
-- or false at the end is left out. With :alike a row is the args alone, and all else is the same for all: calls of one function
-- are the usual case, and to take their JSON apart would cost as much as to insert them.
-- json_each gives the rows, and AUTOINCREMENT numbers them, in the order given: ids ascend in it.
INSERT INTO django_jobs_job (
    name, queue_name, priority, max_attempts, run_after, args, kwargs, state, attempt, claims, created_at, holds_key,
    timeout, tags, metadata
)
SELECT
    CASE WHEN :alike THEN :name ELSE json_extract(value, '$[0]') END,
    CASE WHEN :alike THEN :queue_name ELSE json_extract(value, '$[1]') END,
    CASE WHEN :alike THEN :priority ELSE json_extract(value, '$[2]') END,
    CASE WHEN :alike THEN :max_attempts ELSE json_extract(value, '$[3]') END,
    CASE WHEN :alike THEN :run_after ELSE json_extract(value, '$[4]') END,
    CASE WHEN :alike THEN value ELSE json_extract(value, '$[5]') END,
    CASE WHEN :alike THEN '{}' ELSE json_extract(value, '$[6]') END,
    CASE WHEN :alike THEN CASE WHEN :run_after > :now THEN 'scheduled' ELSE 'available' END
         WHEN json_extract(value, '$[7]') THEN 'pending'
         WHEN json_extract(value, '$[4]') > :now THEN 'scheduled' ELSE 'available' END,
    0, 0, :now, 0,
    CASE WHEN NOT :alike THEN json_extract(value, '$[8]') END,
    CASE WHEN NOT :alike THEN json_extract(value, '$[9]') END,
    CASE WHEN :alike THEN :metadata ELSE json_extract(value, '$[10]') END
FROM json_each(:rows)
WHERE true
RETURNING id
