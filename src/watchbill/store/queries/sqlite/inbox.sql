-- Read the questions that wait for a person, oldest first; with the newest answer that did not fit, and who has answered.
SELECT
    asked.id, asked.run_id, asked.call, asked.run, asked.args, asked.rank,
    (
        SELECT decision.body
        FROM decision
        WHERE decision.run = asked.run
            AND decision.call = asked.call
            AND decision.actor = 'scheduler'
            AND decision.at >= asked.rank
        ORDER BY decision.rowid DESC
        LIMIT 1
    ),
    (
        SELECT fact.actor
        FROM fact
        WHERE fact.run = asked.run
            AND fact.kind = 'answer'
            AND fact.ref = printf('%x', asked.id)
    ),
    asked.kind, asked.why, asked.step, asked.rung, asked.policy,
    NULL, NULL,
    CASE WHEN asked.claimed_until > :now THEN asked.claimed_by END, asked.claimed_until
FROM attempt AS asked
CROSS JOIN run ON run.num = asked.run
WHERE asked.kind = 1
    AND run.namespace = :namespace
    AND run.status < 10
ORDER BY asked.id
LIMIT :limit
