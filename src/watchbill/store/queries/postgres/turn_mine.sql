-- Say whether all of them are held, and what time it is: asked once, by every part of the turn.
SELECT count(*) = cardinality(:shards::integer[]) AS whole, (SELECT watchbill.at(:now::bigint)) AS now
FROM held
