-- Write one chunk of an upload. Writing it again changes nothing.
INSERT INTO chunk (run, upload, n, body)
VALUES (:run, :id, :n, :body)
ON CONFLICT DO NOTHING
