-- Read the answer that waits for its run.
SELECT actor, body
FROM fact
WHERE run = :run
    AND kind = :kind
    AND ref = :ref
