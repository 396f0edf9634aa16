-- Run a tick: insert its job and move the ledger on, in one statement, so that there is one job for each tick, and no
-- tick without one.
-- Two keepers that read the same row both come here. The second waits for the lock in held; then the conditions are
-- looked at again on the row as the first has left it, and it finds nothing. The same for one that was paused, removed
-- or changed meanwhile. That last_tick only grows holds whatever else was written: a clock that steps back, a
-- declaration that changes and changes back.
-- A live job that holds the unique key stands for the tick: no job is inserted, and the ledger moves on.
WITH held AS MATERIALIZED (
    SELECT id, COALESCE(:now::timestamptz, statement_timestamp()) AS now
    FROM django_jobs_schedule
    WHERE id = :id AND paused_at IS NULL AND removed_at IS NULL
      AND owed_after = :read_owed_after::timestamptz
      AND next_tick IS NOT DISTINCT FROM :read_next_tick::timestamptz
      AND (last_tick IS NULL OR last_tick < :tick::timestamptz)
    FOR UPDATE
), inserted AS (
    INSERT INTO django_jobs_job (
        name, queue_name, args, kwargs, priority, state, attempt, max_attempts, claims, run_after, created_at,
        unique_key, holds_key, key_until, timeout, tags, metadata
    )
    SELECT :name, :queue_name, :args::json, :kwargs::json, :priority, 'available', 0, :max_attempts, 0, held.now,
           held.now, :unique_key::text, :unique_key::text IS NOT NULL, :key_until::timestamptz, :timeout::float8,
           :tags::json, :metadata::json
    FROM held
    ON CONFLICT (unique_key) WHERE holds_key DO NOTHING
    RETURNING {job columns}, CASE WHEN :notify::boolean THEN pg_notify('django_jobs', '+' || queue_name) END
), ticked AS (
    UPDATE django_jobs_schedule AS schedule
    SET last_tick = :tick::timestamptz, next_tick = :following::timestamptz,
        last_job_id = COALESCE((SELECT id FROM inserted), schedule.last_job_id), last_error = '', updated_at = held.now
    FROM held
    WHERE schedule.id = held.id
    RETURNING {schedule columns of schedule}
)
SELECT ticked.*, inserted.* FROM ticked LEFT JOIN inserted ON true
