-- Say whether there are incidents that were resolved long ago.
SELECT EXISTS (
        SELECT 1
        FROM incident
        WHERE state = 1
            AND resolved_at < :before
    )
