-- Begin an upload. Beginning it again under the same term changes nothing; of another term it is not begun.
INSERT INTO upload (run, id, shard, term)
VALUES (:run, :id, :shard, :term)
ON CONFLICT DO UPDATE SET shard = excluded.shard WHERE term = excluded.term
