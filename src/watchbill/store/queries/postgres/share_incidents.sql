-- Give all regions the open incidents of the owner that quote nothing; a cause that is open there stays apart.
UPDATE watchbill.incident
SET region = '*'
WHERE region = ''
    AND state = 0
    AND shared
    AND NOT EXISTS (
        SELECT 1
        FROM watchbill.incident AS theirs
        WHERE theirs.namespace = incident.namespace
            AND theirs.region = '*'
            AND theirs.cause = incident.cause
            AND theirs.state = 0
    )
