-- Forget some who are gone since long, but nobody whom a running attempt still names: that must be found first.
DELETE FROM agent
WHERE id IN (
        SELECT id
        FROM (
            SELECT id
            FROM agent
            WHERE state <> 1
                AND gone_at < :before
            ORDER BY gone_at
            LIMIT :limit
        )
        UNION ALL
        SELECT id
        FROM (
            SELECT id
            FROM agent
            WHERE state = 1
                AND until < :before
            LIMIT :limit
        )
    )
    AND id <> :agent
    AND NOT EXISTS (
        SELECT 1
        FROM attempt
        WHERE attempt.agent = agent.id
            AND attempt.state = 1
    )
