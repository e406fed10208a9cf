-- Make a canary ready again, uncharged, at the end of the line: its dependency is ill, and it has tried for all the others.
UPDATE attempt
SET state = 0, losses = losses - 1, rank = max(rank, ?4), result = NULL, ended_at = NULL, watch_at = NULL
WHERE id = ?1
    AND fence = ?2
    AND state = 1
    AND ?3 IS NOT NULL
