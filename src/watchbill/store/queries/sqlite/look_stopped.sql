-- Name what somebody has paused in the namespace of a shard.
SELECT name
FROM gate
WHERE paused
    AND namespace = (SELECT namespace FROM shard WHERE id = :shard)
ORDER BY name
