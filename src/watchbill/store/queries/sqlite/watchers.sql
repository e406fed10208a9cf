-- Read the supervisors that divide the work and are in time, by id.
SELECT id, way, region, info, lag
FROM supervisor
WHERE until > :now
ORDER BY id
