-- Give a live run a later deadline, if it still has the one that was seen, and tell it so.
WITH extended AS (
    UPDATE watchbill.run
    SET deadline = :until::bigint
    WHERE namespace = :namespace
        AND id = :id
        AND (status < 10) IS TRUE -- never found by it: it is found by its id
        AND deadline = :seen::bigint
    RETURNING num, shard
),
told AS (
    INSERT INTO watchbill.fact (shard, run, kind, ref, actor, body, at)
    SELECT shard, num, 'extend', :ref, :actor, :body::bytea, (SELECT watchbill.at(:now::bigint))
    FROM extended
    ON CONFLICT (run, kind, ref) DO NOTHING
)
SELECT num
FROM extended
