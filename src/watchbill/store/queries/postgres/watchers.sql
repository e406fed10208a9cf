-- Read the supervisors that divide the work and are in time, by id.
-- An embedded supervisor divides nothing: it has a row only while it hears no hints.
SELECT id, way, region, info, lag
FROM watchbill.supervisor
WHERE until > (SELECT watchbill.at(:now::bigint))
    AND way <> 'embedded'
ORDER BY id
