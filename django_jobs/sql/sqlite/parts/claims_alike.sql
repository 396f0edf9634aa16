-- The claims of complete that all have the same number: most jobs complete in their first. An array of ids is taken
-- apart, and looked through, for less than pairs are. Fenced as in finish.
WHERE id IN (SELECT value FROM json_each(:ids)) AND claims = :claims AND +state = 'running'
