-- Read whether an agent is alive, until when, its last lease that got rows, and what is wanted of it.
SELECT state, until, lease_no, wish
FROM agent
WHERE id = :agent
