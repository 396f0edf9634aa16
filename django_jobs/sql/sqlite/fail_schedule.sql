-- Note why a schedule's tick could not be run. The ledger stays, so the tick is tried again.
UPDATE django_jobs_schedule SET last_error = :error, updated_at = :now WHERE id = :id RETURNING id
