-- Mark the agents of dead processes lost: what they ran is looked at now.
-- If their silence is all there is against them, they may live, and act until their lease has ended: that is kept.
UPDATE agent
SET state = 2, until = CASE WHEN :unheard THEN until ELSE min(until, :now) END, gone_at = :now
WHERE state = 1
    AND id IN (SELECT value FROM json_each(:processes))
