-- Find the uploads of these shards whose term is over: no turn can take them any more.
SELECT upload.run, upload.id, upload.shard, 0, upload.term
FROM upload
JOIN lease ON lease.role = 'scheduler' AND lease.shard = upload.shard
WHERE upload.shard IN (SELECT value FROM json_each(:shards))
    AND upload.term < lease.term
ORDER BY upload.run, upload.id
