-- Say whether anything waits in these queues that has failed before.
SELECT EXISTS (
    SELECT 1
    FROM json_each(:queues) AS mine
    CROSS JOIN attempt AS waiting
    WHERE waiting.queue = mine.value
        AND waiting.state = 0
        AND waiting.held = 0
        AND waiting.failures > 0
)
