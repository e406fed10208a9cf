-- Say whether a scheduler that attends a namespace knows a workflow; also yes when nobody attends.
SELECT
    NOT EXISTS (
        SELECT 1
        FROM scheduler
        WHERE namespace = :namespace
            AND until > :now
    )
    OR EXISTS (
        SELECT 1
        FROM scheduler
        CROSS JOIN json_each(scheduler.knows) AS known
        WHERE namespace = :namespace
            AND until > :now
            AND known.value = :workflow
    )
