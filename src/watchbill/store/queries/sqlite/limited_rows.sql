-- Find the most urgent rows of one queue behind one gate: no more than it lets through.
-- What has failed before is left out where the budget of its dependency is spent: it hides nobody.
-- What failed or was lost with this agent is left to others for a while.
-- Nobody is tried with what must not be repeated: its failure would leave a doubt.
SELECT id, rank, :lonely, failures > 0, coalesce(ahead, 0)
FROM attempt
WHERE queue = :queue
    AND gate = :gate
    AND (alone OR losses >= 2) = :lonely
    AND state = 0
    AND held = 0
    AND gate IS NOT NULL
    AND (:retries OR failures = 0)
    AND step IN (SELECT value FROM json_each(:steps))
    AND (NOT :trial OR instr(policy, :unrepeatable) = 0)
    AND (
        :workflows IS NULL
        OR (SELECT workflow FROM run WHERE num = attempt.run) NOT IN (SELECT value FROM json_each(:workflows))
    )
    AND (avoid IS NOT :agent OR avoid_until <= :now)
ORDER BY rank, id
LIMIT :limit
