-- Write down that agents are missed that still are lost, and that nobody has missed yet: each is given once.
-- With how many attempts were taken from them, or are about to be.
UPDATE agent
SET missed_at = max(:now, 1), found = CASE state WHEN 1 THEN 'expired' ELSE found END
WHERE id IN (SELECT value FROM json_each(:agents))
    AND CASE state
        WHEN 1 THEN until <= :now AND missed_at < beat_at
        WHEN 2 THEN missed_at = 0
    END
RETURNING
    id, namespace, region, name, state, found, until, gone_at, beat_at,
    moved + (SELECT count(*) FROM attempt WHERE attempt.agent = agent.id AND attempt.state = 1)
