-- Read when agents were last heard that are gone since a time, or are silent.
SELECT id, beat_at
FROM watchbill.agent
WHERE state <> 1
    AND gone_at >= :since::bigint
    AND namespace = :namespace
UNION ALL
SELECT id, beat_at
FROM watchbill.agent
WHERE state = 1
    AND until <= (SELECT watchbill.at(:now::bigint))
    AND namespace = :namespace
LIMIT :limit::bigint
