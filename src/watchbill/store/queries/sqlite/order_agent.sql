-- Change what is wanted of an agent that may still work, or what it has; what is not given stays as it is.
UPDATE agent
SET wish = coalesce(:wish, wish), needs = coalesce(:needs, needs)
WHERE id = :agent
    AND namespace = :namespace
    AND state = 1
