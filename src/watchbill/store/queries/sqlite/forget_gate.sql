-- Forget a gate that would be made anew as it is: not paused, unused for long, its bucket full.
DELETE FROM gate
WHERE namespace = ?1
    AND name = ?2
    AND NOT paused
    AND state = 0
    AND tokens_at < ?3 - ?4
    AND (starts IS NULL OR tokens + (?3 - tokens_at) * 1.0 * starts / per >= max(1.0, starts * 1000000.0 / per))
