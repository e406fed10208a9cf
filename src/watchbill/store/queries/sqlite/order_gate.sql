-- Pause a gate, open it again, or (paused is null) leave that as it is; gives its breaker if it is there.
UPDATE gate
SET
    paused = coalesce(:paused, paused),
    paused_by = CASE WHEN :paused THEN :by WHEN :paused IS NULL THEN paused_by END,
    paused_why = CASE WHEN :paused THEN :reason WHEN :paused IS NULL THEN paused_why END,
    paused_at = CASE WHEN :paused THEN :now WHEN :paused IS NULL THEN paused_at END
WHERE namespace = :namespace
    AND name = :name
RETURNING breaker
