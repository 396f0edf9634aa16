-- Make and change schedules to be as declared; one that is so already is not written. Workers that start at once lock
-- the rows in the same order, that of the keys.
-- A schedule whose times have changed, or that comes back, owes nothing of the time until now, and the keeper works out
-- its next tick anew. The ledger's last tick stays, whatever happens: no tick is run twice.
INSERT INTO django_jobs_schedule AS schedule (
    key, name, expression, timezone, missed, args, kwargs, options, owed_after, last_error, created_at, updated_at
)
SELECT declared.key, declared.name, declared.expression, declared.timezone, declared.missed,
       declared.args::json, declared.kwargs::json, declared.options::json, clock.now, '', clock.now, clock.now
FROM json_to_recordset(:declared::json) AS declared (
         key text, name text, expression text, timezone text, missed text, args text, kwargs text, options text
     ),
     (SELECT COALESCE(:now::timestamptz, statement_timestamp()) AS now) AS clock
ORDER BY declared.key COLLATE "C"
ON CONFLICT (key) DO UPDATE
SET name = excluded.name, expression = excluded.expression, timezone = excluded.timezone, missed = excluded.missed,
    args = excluded.args, kwargs = excluded.kwargs, options = excluded.options,
    owed_after = CASE
        WHEN schedule.removed_at IS NOT NULL
             OR (schedule.expression, schedule.timezone) <> (excluded.expression, excluded.timezone)
        THEN excluded.owed_after ELSE schedule.owed_after END,
    next_tick = CASE
        WHEN schedule.removed_at IS NULL
             AND (schedule.expression, schedule.timezone) = (excluded.expression, excluded.timezone)
        THEN schedule.next_tick END,
    last_error = '', removed_at = NULL, updated_at = excluded.updated_at
WHERE schedule.removed_at IS NOT NULL
   OR (schedule.name, schedule.expression, schedule.timezone, schedule.missed, schedule.args::text,
       schedule.kwargs::text, schedule.options::text)
      <> (excluded.name, excluded.expression, excluded.timezone, excluded.missed, excluded.args::text,
          excluded.kwargs::text, excluded.options::text)
RETURNING {schedule columns}, CASE WHEN :notify::boolean THEN pg_notify('django_jobs', '~') END
