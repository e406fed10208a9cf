-- Read the trigger that keeps schedules from going back.
SELECT sql
FROM sqlite_schema
WHERE type = 'trigger'
    AND name = 'schedule_never_goes_back'
