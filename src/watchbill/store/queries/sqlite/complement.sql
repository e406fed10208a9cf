-- Read the agents of all namespaces that are there, and those that were lost since a time.
-- With how many attempts were taken from these, or are about to be, and what those say whose threads run on.
SELECT
    id, namespace, region, name, info, needs, joined_at, beat_at, state, until, gone_at, missed_at, found,
    CASE
        WHEN until > :now THEN 0
        ELSE moved + (SELECT count(*) FROM attempt WHERE attempt.agent = agent.id AND attempt.state = 1)
    END,
    CASE WHEN substr(said, 1, length(:says_so)) = :says_so THEN said ELSE x'' END
FROM agent
WHERE state = 1
    AND until > :since
UNION ALL
SELECT
    id, namespace, region, name, info, needs, joined_at, beat_at, state, until, gone_at, missed_at, found,
    moved + (SELECT count(*) FROM attempt WHERE attempt.agent = agent.id AND attempt.state = 1), x''
FROM agent
WHERE state = 2
    AND gone_at > :since
ORDER BY id
