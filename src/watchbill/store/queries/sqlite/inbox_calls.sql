-- Read calls that wait for a person, oldest first; with the newest decision that did not fit, and who has decided,
-- also for all members of an incident, of which this one has not been told yet.
SELECT
    asked.id, asked.run_id, asked.call, asked.run, x'', asked.rank,
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
    coalesce(
        (
            SELECT fact.actor
            FROM fact
            WHERE fact.run = asked.run
                AND fact.kind = 'resolve'
                AND fact.ref = printf('%x', asked.id)
        ),
        (
            SELECT incident.ordered_by
            FROM incident
            WHERE incident.id = asked.incident
                AND incident.state = 0
                AND incident.ordered IS NOT NULL
                AND incident.fed_to < asked.id
                AND incident.ordered_at >= coalesce(asked.ended_at, 0)
        )
    ),
    asked.kind, asked.why, asked.step, asked.rung, asked.policy,
    asked.result, asked.incident,
    CASE WHEN asked.claimed_until > :now THEN asked.claimed_by END, asked.claimed_until,
    asked.watch_at
FROM attempt AS asked INDEXED BY attempt_person
CROSS JOIN run ON run.num = asked.run
WHERE asked.state = 3
    AND asked.why IN ('quarantine', 'escalate', 'doubt')
    AND run.namespace = :namespace
    AND run.status < 10
ORDER BY asked.id
LIMIT :limit
