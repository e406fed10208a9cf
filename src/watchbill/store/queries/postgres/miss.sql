-- Write down that agents are missed that still are lost, and that nobody has missed yet: each is given once.
-- With how many attempts were taken from them, or are about to be. One that beats at this moment is waited for.
WITH lost AS (
    SELECT id
    FROM watchbill.agent
    WHERE id = ANY (:agents::bigint[])
    ORDER BY id
    FOR NO KEY UPDATE
)
UPDATE watchbill.agent
SET
    missed_at = greatest((SELECT watchbill.at(:now::bigint)), 1),
    found = CASE state WHEN 1 THEN 'expired' ELSE found END
WHERE id = ANY (ARRAY(SELECT id FROM lost))
    AND CASE state
        WHEN 1 THEN until <= (SELECT watchbill.at(:now::bigint)) AND missed_at < beat_at
        WHEN 2 THEN missed_at = 0
        ELSE false
    END
RETURNING
    id, namespace, region, name, state, found, until, gone_at, beat_at,
    moved + (SELECT count(*) FROM watchbill.attempt WHERE attempt.agent = agent.id AND attempt.state = 1)
