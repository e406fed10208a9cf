-- Say whether there are agents whose leases end by time, and who are in time or have something.
SELECT EXISTS (
    SELECT 1
    FROM agent
    WHERE state = 1
        AND until < :forever
        AND (
            until > :now
            OR EXISTS (
                SELECT 1
                FROM attempt
                WHERE attempt.agent = agent.id
                    AND attempt.state = 1
            )
        )
)
