-- Say whether something waits in one of several queues.
SELECT EXISTS (
    SELECT 1
    FROM json_each(:queues) AS asked
    CROSS JOIN attempt AS ready ON ready.queue = asked.value
    WHERE ready.state = 0
        AND ready.held = 0
)
