-- Lock the quota of attempts of an agent's namespace, if there is one: no other lease there counts until this one ends.
-- The agent's own row is locked first, as by every lease.
WITH me AS MATERIALIZED (
    SELECT namespace
    FROM watchbill.agent
    WHERE id = :agent
    FOR SHARE
)
SELECT namespace, at_once
FROM watchbill.gate
WHERE namespace = (SELECT namespace FROM me)
    AND name = 'quota.attempts'
FOR UPDATE
