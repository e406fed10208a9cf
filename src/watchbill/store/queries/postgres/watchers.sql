-- Read the supervisors that divide the work and are in time, by id.
SELECT id, way, region, info, lag
FROM watchbill.supervisor
WHERE until > (SELECT watchbill.at(:now::bigint))
ORDER BY id
