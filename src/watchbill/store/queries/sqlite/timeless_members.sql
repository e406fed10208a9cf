-- Take away the time that people have to decide about the members of an incident: one of them has, for all.
UPDATE attempt
SET watch_at = NULL, remind_at = NULL
WHERE incident = :incident
    AND state = 3
    AND why IN ('quarantine', 'escalate', 'doubt')
