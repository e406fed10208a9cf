-- Read the supervisors whose lease has not expired, by id.
SELECT id, way, region, info, lag
FROM watchbill.supervisor
WHERE until > (SELECT watchbill.at(:now::bigint))
ORDER BY id
