-- Read how agents were called under which something runs though they are gone, by which evidence they are, and when they
-- were last heard.
SELECT id, name, state, found, beat_at
FROM watchbill.agent
WHERE id = ANY (:agents::bigint[])
