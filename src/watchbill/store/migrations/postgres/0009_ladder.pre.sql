-- The ladder: what is tried after the retries, and what nobody knows.

-- earlier: attempts that neither budget counts; doubt: of an attempt that may have taken effect.
ALTER TABLE watchbill.attempt
    ADD COLUMN earlier integer NOT NULL DEFAULT 0,
    ADD COLUMN doubt bytea;

-- What waits for another agent than it had: few, and looked at when an agent goes.
CREATE INDEX attempt_avoid ON watchbill.attempt (id) WHERE state = 0 AND avoid IS NOT NULL;

-- What took effect on another rung is done, too (outcome 5); a probe (kind 2) is a step that is asked about.
CREATE OR REPLACE VIEW watchbill.steps AS
SELECT
    run.namespace,
    run.id AS workflow_id,
    attempt.call AS id,
    attempt.step AS type,
    watchbill.shown(attempt.args) AS payload,
    CASE attempt.state WHEN 1 THEN 'running' WHEN 4 THEN 'completed' WHEN 5 THEN 'failed' ELSE 'pending' END AS status,
    (attempt.earlier + attempt.failures + attempt.losses - (attempt.state = 1)::integer)::bigint AS retries,
    (watchbill.shown(attempt.policy)::json ->> 'retries')::bigint AS max_retries,
    attempt.agent AS assigned_agent,
    watchbill.moment(coalesce(attempt.started_at, attempt.rank + run.priority * 60000000)) AS created_at,
    watchbill.moment(
        greatest(coalesce(attempt.started_at, attempt.rank + run.priority * 60000000), attempt.ended_at, attempt.progress_at)
    ) AS updated_at,
    CASE attempt.state WHEN 1 THEN attempt.agent END AS locked_by,
    CASE attempt.state
        WHEN 1 THEN watchbill.moment(
            attempt.started_at + (watchbill.shown(attempt.policy)::json ->> 'timeout')::bigint
        )
    END AS complete_by,
    CASE attempt.state
        WHEN 1 THEN 'Processing' WHEN 4 THEN 'Processed' WHEN 5 THEN 'Error' ELSE 'Pending'
    END AS process_state,
    (attempt.earlier + attempt.failures + attempt.losses - (attempt.state = 1)::integer)::bigint AS failure_count,
    watchbill.shown(attempt.result) AS result,
    attempt.why
FROM watchbill.attempt
JOIN watchbill.run ON run.num = attempt.run
WHERE attempt.kind IN (0, 2)
UNION ALL
SELECT
    run.namespace,
    run.id,
    journal.key,
    -- The key without its task (up to the last slash) and its number (.2): the step's name, unless its author chose a key.
    regexp_replace(journal.key, '^.*/|\.[0-9]+$', '', 'g'),
    NULL,
    CASE WHEN journal.outcome IN (0, 5) THEN 'completed' ELSE 'failed' END,
    failed.attempts,
    NULL,
    journal.agent,
    watchbill.moment(coalesce(journal.started_at, journal.at)),
    watchbill.moment(journal.at),
    NULL,
    NULL,
    CASE WHEN journal.outcome IN (0, 5) THEN 'Processed' ELSE 'Error' END,
    failed.attempts,
    watchbill.shown(journal.body),
    NULL
FROM watchbill.journal
JOIN watchbill.run ON run.num = journal.run
CROSS JOIN LATERAL (
    SELECT count(DISTINCT decision.fence) AS attempts
    FROM watchbill.decision
    WHERE decision.run = journal.run AND decision.call = journal.key AND decision.actor = 'supervisor'
) AS failed
WHERE journal.kind = 0;
