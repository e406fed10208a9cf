-- Read what the agents that are alive and in time, of all namespaces, say of what they did, and who is suspended.
SELECT
    id, namespace, name, doings, suspension, beat_at, judged_from, wish = 0, region, needs,
    (SELECT watchbill.at(:now::bigint))
FROM watchbill.agent
WHERE state = 1
    AND until > (SELECT watchbill.at(:now::bigint))
ORDER BY id
