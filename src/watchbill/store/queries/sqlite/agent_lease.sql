-- Read whether an agent is alive, until when, and its last lease that got rows.
SELECT state, until, lease_no
FROM agent
WHERE id = :agent
