-- Read what agents run, of each so many.
SELECT mine.agent, held.run_id, held.call, held.step
FROM unnest(:agents::bigint[]) AS mine (agent)
CROSS JOIN LATERAL (
    SELECT id, run_id, call, step
    FROM watchbill.attempt
    WHERE attempt.agent = mine.agent
        AND attempt.state = 1
    LIMIT :limit::bigint
) AS held
ORDER BY held.id
