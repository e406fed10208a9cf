-- Read the supervisors of a way and region that stand watch, by id.
SELECT id, info, lag
FROM supervisor
WHERE way = :way
    AND region = :region
    AND until > :now
ORDER BY id
