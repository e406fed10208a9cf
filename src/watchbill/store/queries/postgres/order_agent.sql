-- Change what is wanted of an agent that may still work, or what it has; what is not given stays as it is.
-- Whoever wants it to work lets it back, too, if it was suspended: what it did before is forgiven.
UPDATE watchbill.agent
SET
    wish = coalesce(:wish::smallint, wish),
    needs = coalesce(:needs::text[], needs),
    suspension = CASE WHEN :wish::smallint = 0 THEN NULL ELSE suspension END,
    judged_from = CASE WHEN :wish::smallint = 0 THEN (SELECT watchbill.at(:now::bigint)) ELSE judged_from END
WHERE id = :agent
    AND namespace = :namespace
    AND state = 1
RETURNING id
