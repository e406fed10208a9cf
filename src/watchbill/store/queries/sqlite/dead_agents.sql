-- Read how agents were called under which something runs though they are gone, by which evidence they are, and when they
-- were last heard; not of those of a store's owner, who say nothing.
SELECT id, name, state, found, CASE WHEN name NOT GLOB :embedded THEN beat_at END
FROM agent
WHERE id IN (SELECT value FROM json_each(:agents))
