-- Read calls that wait for a person, oldest first; with the newest decision that did not fit, and who has decided,
-- also for all members of an incident, of which this one has not been told yet.
SELECT
    asked.id, asked.run_id, asked.call,
    ''::bytea, asked.rank,
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
    coalesce(
        (
            SELECT fact.actor
            FROM watchbill.fact
            WHERE fact.run = asked.run
                AND fact.kind = 'resolve'
                AND fact.ref = to_hex(asked.id)
        ),
        (
            SELECT incident.ordered_by
            FROM watchbill.incident
            WHERE incident.id = asked.incident
                AND incident.state = :open::smallint
                AND incident.ordered IS NOT NULL
                AND incident.fed_to < asked.id
                AND incident.ordered_at >= coalesce(asked.ended_at, 0)
        )
    ) AS answered_by,
    asked.kind, asked.why, asked.step, asked.rung, asked.policy,
    watchbill.whole(asked.run, asked.result), asked.incident,
    CASE WHEN asked.claimed_until > (SELECT watchbill.at(:now::bigint)) THEN asked.claimed_by END, asked.claimed_until,
    asked.watch_at
FROM watchbill.attempt AS asked
CROSS JOIN watchbill.run
WHERE asked.state = 3
    AND (asked.why || '') IN ('quarantine', 'escalate', 'doubt')
    AND run.num = asked.run
    AND (run.namespace = :namespace) IS TRUE -- never found by it: they are found by their numbers
    AND run.status < 10
ORDER BY asked.id + 0 -- they are few, and not found by walking through all
LIMIT :limit::bigint
