-- Let a parked row be tried again, with fresh budgets: a person has asked for it.
-- Whoever was asked whether it took effect, and wants it again, says that it did not; not what was tried another way before.
-- Not what may still act: it may have taken effect, and is asked about when it cannot act any more.
UPDATE attempt
SET
    state = 0, earlier = earlier + failures + losses, failures = 0, losses = 0, doubt = NULL, why = NULL,
    unsure = unsure AND (rung > 0 OR why IS NOT 'doubt'),
    incident = NULL, claimed_by = NULL, watch_at = NULL, remind_at = NULL, rank = ?2
WHERE id = ?1
    AND state = 3
    AND kind = 0
    AND why IS NOT 'settle'
