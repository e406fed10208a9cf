-- Read whether an agent is alive, until when, its last lease that got rows, what is wanted of it, and whether it is suspended.
SELECT state, until, lease_no, wish, suspension IS NOT NULL
FROM agent
WHERE id = :agent
