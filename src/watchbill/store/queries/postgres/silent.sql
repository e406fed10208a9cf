-- Find living agents whose lease ends, and whose session was there when they last beat, and is not; locks are read once.
SELECT id, beat_at, until, (SELECT watchbill.at(:now::bigint))
FROM watchbill.agent
WHERE state = 1
    AND witness
    AND until < 4611686018427387904
    AND watchbill.witness_lock(id) <> ALL (ARRAY(
        SELECT (classid::bigint << 32) | objid::bigint
        FROM pg_locks
        WHERE locktype = 'advisory'
            AND mode = 'ShareLock'
            AND objsubid = 1
    ))
ORDER BY id
