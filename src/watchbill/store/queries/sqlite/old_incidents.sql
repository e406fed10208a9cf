-- Say whether there are incidents that were resolved long ago, or orders that were given longer ago than they are kept.
SELECT EXISTS (
        SELECT 1
        FROM incident
        WHERE state = 1
            AND resolved_at < :before
    ) OR EXISTS (
        SELECT 1
        FROM logbook
        WHERE at < :ordered_before
    )
