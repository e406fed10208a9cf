-- Read the questions that wait for a person, oldest first; with the newest answer that did not fit, and who has answered.
SELECT
    asked.id, asked.run_id, asked.call,
    watchbill.whole(asked.run, asked.args), asked.rank,
    (
        SELECT decision.body
        FROM watchbill.decision
        WHERE decision.run = asked.run
            AND decision.call = asked.call
            AND decision.actor = 'scheduler'
            AND decision.at >= asked.rank
        ORDER BY decision.id DESC
        LIMIT 1
    ) AS refused,
    (
        SELECT fact.actor
        FROM watchbill.fact
        WHERE fact.run = asked.run
            AND fact.kind = 'answer'
            AND fact.ref = to_hex(asked.id)
    ) AS answered_by,
    asked.kind, asked.why, asked.step, asked.rung, asked.policy,
    NULL::bytea, NULL::bigint,
    CASE WHEN asked.claimed_until > (SELECT watchbill.at(:now::bigint)) THEN asked.claimed_by END, asked.claimed_until
FROM watchbill.attempt AS asked
CROSS JOIN watchbill.run
WHERE asked.kind = 1
    AND run.num = asked.run
    AND (run.namespace = :namespace) IS TRUE -- never found by it: they are found by their numbers
    AND run.status < 10
ORDER BY asked.id
LIMIT :limit::bigint
