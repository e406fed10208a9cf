-- Read some live runs, in order after a place, and which of them have no time at which they would begin.
SELECT shard, num, id, status, status = 0 AND wake_at IS NULL AND NOT paused AND held IS NULL
FROM run
WHERE (shard, num) > (:after_shard, :after_run)
    AND status < 10
    AND status <> 2
ORDER BY shard, num
LIMIT :limit
