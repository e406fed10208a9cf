-- Read how the gates of a namespace stand: their breakers, and who has paused them.
SELECT name, paused, breaker, paused_by, paused_why, paused_at
FROM watchbill.gate
WHERE namespace = :namespace
