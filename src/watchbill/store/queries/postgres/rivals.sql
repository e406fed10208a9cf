-- Read what the others have, of an agent's namespace and region, that are alive, in time, wanted and not suspended.
SELECT DISTINCT other.needs
FROM watchbill.agent AS other
WHERE other.state = 1
    AND other.until > (SELECT watchbill.at(:now::bigint))
    AND other.id <> :agent
    AND other.wish = 0
    AND other.suspension IS NULL
    AND (other.namespace, other.region) = (SELECT namespace, region FROM watchbill.agent WHERE id = :agent)
