-- Say whether a supervisor has to look at a breaker, and when the next time comes.
SELECT coalesce(min(watch_at) <= :now, 0), min(CASE WHEN watch_at > :now THEN watch_at END)
FROM gate
WHERE paused OR state <> 0
