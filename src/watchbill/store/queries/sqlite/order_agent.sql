-- Change what is wanted of an agent that may still work, or what it has; what is not given stays as it is.
-- Whoever wants it to work lets it back, too, if it was suspended: what it did before is forgiven.
UPDATE agent
SET
    wish = coalesce(:wish, wish),
    needs = coalesce(:needs, needs),
    suspension = CASE WHEN :wish = 0 THEN NULL ELSE suspension END,
    judged_from = CASE WHEN :wish = 0 THEN :now ELSE judged_from END
WHERE id = :agent
    AND namespace = :namespace
    AND state = 1
