-- Read how agents are called, how they are, and when they were last heard.
SELECT id, name, state, until, beat_at, suspension, missed_at
FROM watchbill.agent
WHERE id = ANY (:ids::bigint[])
