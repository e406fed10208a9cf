-- Read when agents were last heard that are gone since a time, or are silent; not those of a store's owner, who say nothing.
SELECT id, beat_at
FROM agent
WHERE state <> 1
    AND gone_at >= :since
    AND namespace = :namespace
    AND name NOT GLOB :embedded
UNION ALL
SELECT id, beat_at
FROM agent
WHERE state = 1
    AND until <= :now
    AND namespace = :namespace
LIMIT :limit
