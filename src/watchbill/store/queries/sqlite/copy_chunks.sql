-- Copy the chunks of the large bodies that were copied from another run.
INSERT INTO chunk (run, upload, n, body)
SELECT copied.run, chunk.upload, chunk.n, chunk.body
FROM blob AS copied
JOIN chunk ON chunk.run = :source AND chunk.upload = copied.upload
WHERE copied.run = :run
