-- Take away the time that people have to decide about a call: one of them has.
UPDATE attempt
SET watch_at = NULL, remind_at = NULL
WHERE id = :item
    AND state = 3
    AND why IN ('quarantine', 'escalate', 'doubt')
