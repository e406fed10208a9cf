-- Read the agents of a namespace that are there, or were since a time, with how many attempts each holds.
SELECT
    agent.id, agent.name, agent.namespace, agent.region, agent.state, agent.needs, agent.slots, agent.joined_at,
    agent.beat_at, agent.until, agent.wish, agent.info, agent.said, agent.suspension, agent.missed_at,
    (
        SELECT count(*)
        FROM watchbill.attempt
        WHERE attempt.agent = agent.id
            AND attempt.state = 1
    ) AS running,
    (SELECT watchbill.at(:now::bigint)) AS now
FROM (
    SELECT *
    FROM watchbill.agent
    WHERE state = 1
        AND until > (SELECT watchbill.at(:now::bigint)) - :shown_for::bigint
    UNION ALL
    SELECT *
    FROM watchbill.agent
    WHERE state <> 1
        AND gone_at > (SELECT watchbill.at(:now::bigint)) - :shown_for::bigint
) AS agent
WHERE agent.namespace = :namespace
