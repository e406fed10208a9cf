-- Read the agents of a namespace that are there, or were since a time, with how many attempts each holds.
SELECT
    id, name, namespace, region, state, needs, slots, joined_at, beat_at, until, wish, info, said, suspension, missed_at,
    (
        SELECT count(*)
        FROM attempt
        WHERE attempt.agent = agent.id
            AND attempt.state = 1
    ) AS running
FROM agent
WHERE state = 1
    AND until > :since
    AND namespace = :namespace
UNION ALL
SELECT
    id, name, namespace, region, state, needs, slots, joined_at, beat_at, until, wish, info, said, suspension, missed_at,
    (
        SELECT count(*)
        FROM attempt
        WHERE attempt.agent = agent.id
            AND attempt.state = 1
    ) AS running
FROM agent
WHERE state <> 1
    AND gone_at > :since
    AND namespace = :namespace
