-- Mark the agents of dead processes lost, and by which evidence: what they ran is looked at now, and somebody told.
-- If their silence is all there is against them, they may live, and act until their lease has ended: that is kept.
UPDATE agent
SET
    state = 2,
    until = CASE WHEN :unheard THEN until ELSE min(until, :now) END,
    gone_at = :now,
    found = CASE WHEN :unheard THEN 'silent' ELSE 'dead' END,
    -- Who was missed when its lease ended, and was not heard since, is not told of again.
    missed_at = CASE WHEN missed_at < beat_at THEN 0 ELSE missed_at END
WHERE state = 1
    AND id IN (SELECT value FROM json_each(:processes))
