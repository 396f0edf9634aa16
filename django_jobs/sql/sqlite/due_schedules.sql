-- What there is to do: the schedules that are due or have no next tick yet, and the first that will be; and the time.
SELECT {schedule columns}, :now
FROM django_jobs_schedule
WHERE paused_at IS NULL AND removed_at IS NULL AND (
    next_tick IS NULL OR next_tick <= :now OR next_tick = (
        SELECT min(next_tick) FROM django_jobs_schedule AS later
        WHERE later.paused_at IS NULL AND later.removed_at IS NULL AND later.next_tick > :now
    )
)
ORDER BY next_tick, id
