-- Write down up to which run what is wanted for all runs of an incident is done, unless somebody else does it.
UPDATE watchbill.incident
SET fed_to = :fed_to::bigint, ordered = CASE WHEN :done::boolean THEN NULL ELSE ordered END
WHERE id = :incident::bigint
    AND state = :open::smallint
    AND ordered IS NOT NULL
    AND fed_at IS NOT DISTINCT FROM :seen::bigint
RETURNING id
