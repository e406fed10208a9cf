-- End an attempt, as it was seen, whose agent has left in peace or never was there: what follows is judged.
UPDATE attempt
SET state = 2, watch_at = :now, ended_at = :now, result = :result, unsure = 1
WHERE id = :id
    AND fence = :fence
    AND state = :state
    AND state = 1
    AND coalesce((SELECT agent.state FROM agent WHERE agent.id = attempt.agent), 3) = 3
