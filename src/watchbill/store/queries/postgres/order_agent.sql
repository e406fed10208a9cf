-- Change what is wanted of an agent that may still work, or what it has; what is not given stays as it is.
UPDATE watchbill.agent
SET wish = coalesce(:wish::smallint, wish), needs = coalesce(:needs::text[], needs)
WHERE id = :agent
    AND namespace = :namespace
    AND state = 1
RETURNING id
