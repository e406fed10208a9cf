-- Of what nobody could be told that it is open, by this route, nothing else is told.
UPDATE alert
SET state = 2
WHERE incident = ?1
    AND kind > 0
    AND route = ?2
    AND state = 0
    AND EXISTS (
        SELECT 1
        FROM alert AS opened
        WHERE opened.incident = ?1
            AND opened.kind = 0
            AND opened.route = ?2
            AND opened.state = 2
    )
