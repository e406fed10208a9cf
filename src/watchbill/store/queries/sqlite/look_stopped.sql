-- Name what somebody has paused.
SELECT namespace, name
FROM gate
WHERE paused
    AND (paused OR state <> 0)
ORDER BY name
