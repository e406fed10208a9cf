-- Write down when members of an incident were told what is wanted, and whether that was all of them.
UPDATE incident
SET fed_at = :now, fed_to = :fed_to, ordered = CASE WHEN :done THEN NULL ELSE ordered END
WHERE id = :incident
