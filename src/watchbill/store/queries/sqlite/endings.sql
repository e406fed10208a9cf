-- Say how these runs stand: the last journal entry of those that ended, the quarantined call that alone is left.
SELECT
    run.num, run.status, run.held,
    CASE WHEN run.status >= 10 THEN (
        SELECT body
        FROM journal
        WHERE journal.run = run.num
        ORDER BY seq DESC
        LIMIT 1
    ) END,
    CASE WHEN run.status < 10 THEN (
        SELECT stuck.call
        FROM attempt AS stuck
        WHERE stuck.run = run.num
            AND stuck.state = 3
            AND stuck.why = 'quarantine'
            AND NOT EXISTS (
                SELECT 1
                FROM attempt AS moving
                WHERE moving.run = run.num
                    AND (moving.state IN (0, 1, 2) OR (moving.state = 3 AND moving.why IS NOT 'quarantine'))
            )
        ORDER BY stuck.id
        LIMIT 1
    ) END
FROM json_each(:nums) AS asked
CROSS JOIN run ON run.num = asked.value
