-- Say whether an incident is open that is about agents which were lost, or whose threads run on.
SELECT EXISTS (
    SELECT 1
    FROM incident
    WHERE state = 0
        AND (cause = :lost OR substr(cause, 1, length(:abandoned)) = :abandoned)
)
