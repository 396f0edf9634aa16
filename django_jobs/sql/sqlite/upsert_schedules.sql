-- Make and change schedules to be as declared; one that is so already is not written.
-- A schedule whose times have changed, or that comes back, owes nothing of the time until now, and the keeper works out
-- its next tick anew. The ledger's last tick stays, whatever happens: no tick is run twice.
INSERT INTO django_jobs_schedule AS schedule (
    key, name, expression, timezone, missed, args, kwargs, options, owed_after, last_error, created_at, updated_at
)
SELECT json_extract(value, '$.key'), json_extract(value, '$.name'), json_extract(value, '$.expression'),
       json_extract(value, '$.timezone'), json_extract(value, '$.missed'), json_extract(value, '$.args'),
       json_extract(value, '$.kwargs'), json_extract(value, '$.options'), :now, '', :now, :now
FROM json_each(:declared)
WHERE true
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
   OR (schedule.name, schedule.expression, schedule.timezone, schedule.missed, schedule.args, schedule.kwargs,
       schedule.options)
      <> (excluded.name, excluded.expression, excluded.timezone, excluded.missed, excluded.args, excluded.kwargs,
          excluded.options)
RETURNING {schedule columns}
