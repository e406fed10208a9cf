-- Say whether there are open incidents about runs.
SELECT EXISTS (
    SELECT 1
    FROM incident
    WHERE state = 0
        AND runs = 1
)
