-- Read the supervisors whose lease has not expired, by id.
SELECT id, way, region, info, lag
FROM supervisor
WHERE until > :now
ORDER BY id
