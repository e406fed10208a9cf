-- Read what the others have, of an agent's namespace and region, that are alive, in time, wanted and not suspended.
SELECT DISTINCT other.needs
FROM agent AS me
CROSS JOIN agent AS other ON other.namespace = me.namespace AND other.region = me.region
WHERE me.id = :agent
    AND other.id <> me.id
    AND other.state = 1
    AND other.until > :now
    AND other.wish = 0
    AND other.suspension IS NULL
