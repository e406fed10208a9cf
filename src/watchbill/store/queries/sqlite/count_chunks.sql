-- Count the chunks of an upload that no turn has taken.
SELECT count(*)
FROM chunk
WHERE run = :run
    AND upload = (SELECT id FROM upload WHERE run = :run AND id = :id)
