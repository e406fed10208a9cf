-- Remember the agent's last lease that got rows: only a repeat of it has to look for them.
UPDATE agent
SET lease_no = max(lease_no, :lease_no)
WHERE id = :agent
