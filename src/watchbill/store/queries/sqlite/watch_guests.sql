-- Say whether there are agents whose leases end by time, and who are in time, have something, or are missed by nobody yet.
SELECT EXISTS (
    SELECT 1
    FROM agent
    WHERE state = 1
        AND until < :forever
        AND (
            until > :now
            OR missed_at < beat_at
            OR EXISTS (
                SELECT 1
                FROM attempt
                WHERE attempt.agent = agent.id
                    AND attempt.state = 1
            )
        )
)
