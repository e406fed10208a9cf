-- Remind of questions, and of calls that wait for people, each once; a decision says so.
-- Whoever was to be told of the incident, of a call or of a question, is to be told of this, too, once for the incident.
WITH reminded AS (
    UPDATE watchbill.attempt
    SET remind_at = NULL
    FROM unnest(:ids::bigint[], :remind_ats::bigint[], :decisions::bigint[], :bodies::bytea[])
        AS seen (id, remind_at, decision, body)
    WHERE attempt.id = seen.id
        AND attempt.remind_at IS NOT DISTINCT FROM seen.remind_at -- never found by it: it is found by its number
    RETURNING attempt.id, attempt.run, attempt.call, attempt.incident, seen.decision, seen.body
),
reasons AS (
    INSERT INTO watchbill.decision (run, call, fence, n, at, actor, body)
    SELECT run, call, decision, 0, (SELECT watchbill.at(:now::bigint)), 'wardroom', body
    FROM reminded
    ON CONFLICT DO NOTHING
),
alerts AS (
    INSERT INTO watchbill.alert (incident, kind, route, due_at)
    SELECT incident, 2, route, (SELECT watchbill.at(:now::bigint))
    FROM watchbill.alert
    WHERE incident = ANY (ARRAY(SELECT incident FROM reminded))
        AND kind = 0
        AND state <> 2 -- given up: who heard nothing of the beginning is told of nothing else
    ON CONFLICT DO NOTHING
)
SELECT id
FROM reminded
