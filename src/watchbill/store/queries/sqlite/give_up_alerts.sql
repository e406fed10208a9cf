-- Of what nobody could be told that it is open, by this route, nothing else is told.
UPDATE alert
SET state = 2
WHERE incident = ?1
    AND kind > 0
    AND route = ?2
    AND state = 0
