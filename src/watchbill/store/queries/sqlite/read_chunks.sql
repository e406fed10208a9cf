-- Read the chunks of a large body, in order.
SELECT body
FROM chunk
WHERE run = :run
    AND upload = :upload
ORDER BY n
