-- Write down up to which run what is wanted for all runs of an incident is done, unless somebody else does it.
UPDATE incident
SET fed_to = :fed_to, ordered = CASE WHEN :done THEN NULL ELSE ordered END
WHERE id = :incident
    AND state = 0
    AND ordered IS NOT NULL
    AND fed_at IS :seen
