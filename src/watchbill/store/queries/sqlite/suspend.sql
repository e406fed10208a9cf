-- Suspend an agent, try it for longer, or let it back, if it is as it was seen.
-- Nobody is newly suspended while none of those beside whom it failed may get work; and who is let back because nobody else
-- is left is so only while that is true: who could get work there, beside it, is one of those who cannot do what it failed.
UPDATE agent
SET suspension = :after, judged_from = CASE WHEN :after IS NULL THEN :now ELSE judged_from END
WHERE id = :agent
    AND state = 1
    AND suspension IS :seen
    AND doings = :doings
    AND (
        :after IS NULL
        OR :seen IS NOT NULL
        OR EXISTS (
            SELECT 1
            FROM json_each(:others) AS named
            CROSS JOIN agent AS other ON other.id = named.value
            WHERE other.state = 1
                AND other.until > :now
                AND other.wish = 0
                AND other.suspension IS NULL
        )
    )
    AND (
        NOT :alone
        OR NOT EXISTS (
            SELECT 1
            FROM agent AS other
            WHERE other.state = 1
                AND other.until > :now
                AND other.wish = 0
                AND other.suspension IS NULL
                AND other.namespace = agent.namespace
                AND other.region = agent.region
                AND other.id <> agent.id
                AND other.id NOT IN (SELECT value FROM json_each(:others))
        )
    )
