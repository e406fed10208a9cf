-- Take the second that begins now for members of an incident who are told what is wanted for all, if nobody else has since
-- it was seen; gives since when it is wanted, and how far that has come.
UPDATE incident
SET fed_at = :now
WHERE id = :incident
    AND state = 0
    AND failed
    AND ordered IS NOT NULL
    AND fed_at IS :seen
RETURNING ordered_at, fed_to
