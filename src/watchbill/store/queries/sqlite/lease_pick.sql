-- Choose the most urgent ready rows of several queues, merged by rank; of those that need a process of their own, few.
-- What failed or was lost with this agent is left to others for a while; what is of a paused workflow stays where it is.
-- What has failed and uses a dependency passes its gate, and is not chosen here.
-- Nobody is tried with what must not be repeated: its failure would leave a doubt.
SELECT id
FROM (
    SELECT id, rank
    FROM (
        SELECT attempt.id, attempt.rank
        FROM json_each(:queues) AS mine
        CROSS JOIN attempt
        WHERE attempt.id IN (
            SELECT ready.id
            FROM attempt AS ready
            WHERE ready.queue = mine.value
                AND (ready.alone OR ready.losses >= 2) = 0
                AND ready.state = 0
                AND ready.held = 0
                AND (:retries OR ready.failures = 0)
                AND ready.step IN (SELECT value FROM json_each(:steps))
                AND (NOT :trial OR instr(ready.policy, :unrepeatable) = 0)
                AND (
                    :workflows IS NULL
                    OR (SELECT workflow FROM run WHERE num = ready.run) NOT IN (SELECT value FROM json_each(:workflows))
                )
                AND (ready.avoid IS NOT :agent OR ready.avoid_until <= :now)
            ORDER BY ready.rank, ready.id
            LIMIT :limit
        )
        ORDER BY attempt.rank, attempt.id
        LIMIT :limit
    )
    UNION ALL
    SELECT id, rank
    FROM (
        SELECT attempt.id, attempt.rank
        FROM json_each(:queues) AS mine
        CROSS JOIN attempt
        WHERE attempt.id IN (
            SELECT ready.id
            FROM attempt AS ready
            WHERE ready.queue = mine.value
                AND (ready.alone OR ready.losses >= 2) = 1
                AND ready.state = 0
                AND ready.held = 0
                AND (:retries OR ready.failures = 0)
                AND ready.step IN (SELECT value FROM json_each(:steps))
                AND (NOT :trial OR instr(ready.policy, :unrepeatable) = 0)
                AND (
                    :workflows IS NULL
                    OR (SELECT workflow FROM run WHERE num = ready.run) NOT IN (SELECT value FROM json_each(:workflows))
                )
                AND (ready.avoid IS NOT :agent OR ready.avoid_until <= :now)
            ORDER BY ready.rank, ready.id
            LIMIT :alone
        )
        ORDER BY attempt.rank, attempt.id
        LIMIT :alone
    )
)
ORDER BY rank, id
LIMIT :limit
