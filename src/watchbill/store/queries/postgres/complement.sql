-- Read the agents of all namespaces that are there, and those that were lost since a time; and whether an incident is open
-- that is about any of them. With how many attempts were taken from these, or are about to be, and what those say whose
-- threads run on. One row at least, for the time.
SELECT
    (SELECT watchbill.at(:now::bigint)),
    EXISTS (
        SELECT 1
        FROM watchbill.incident
        WHERE incident.state = 0
            AND (cause = :lost::text OR substr(cause, 1, length(:abandoned::text)) = :abandoned::text)
    ),
    hand.*
FROM (SELECT 1) AS house (one)
LEFT JOIN (
    SELECT
        id, namespace, region, name, info, needs, joined_at, beat_at, state, until, gone_at, missed_at, found,
        CASE
            WHEN until > (SELECT watchbill.at(:now::bigint)) THEN 0
            ELSE moved + (SELECT count(*) FROM watchbill.attempt WHERE attempt.agent = agent.id AND attempt.state = 1)
        END AS held,
        CASE WHEN substr(said, 1, octet_length(:says_so::bytea)) = :says_so::bytea THEN said ELSE ''::bytea END AS said
    FROM watchbill.agent
    WHERE state = 1
        AND until > (SELECT watchbill.at(:now::bigint)) - :within::bigint
    UNION ALL
    SELECT
        id, namespace, region, name, info, needs, joined_at, beat_at, state, until, gone_at, missed_at, found,
        moved + (SELECT count(*) FROM watchbill.attempt WHERE attempt.agent = agent.id AND attempt.state = 1), ''::bytea
    FROM watchbill.agent
    WHERE state <> 1
        AND state = 2
        AND gone_at > (SELECT watchbill.at(:now::bigint)) - :within::bigint
) AS hand ON true
ORDER BY hand.id
