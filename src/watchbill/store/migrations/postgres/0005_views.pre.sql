-- What people and their reports read: docs/sql.md. The tables below them may change, these keep their columns.
-- What is sealed, or too large for its row, is not shown.

CREATE FUNCTION watchbill.shown(body bytea) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN get_byte(body, 0) > 1 THEN convert_from(body, 'UTF8') END WHERE length(body) > 0 $$;

CREATE FUNCTION watchbill.moment(at bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS
$$ SELECT to_timestamp(at / 1000000.0) $$;

-- Each call of a step: while it has a row, as it stands; afterwards as the journal has it. What runs for less than a
-- second has no row, and is seen when it has ended. `losses` counts the attempt that runs; `rank` is the time, less a
-- minute for each point of priority. After a rewind what was done before it is there, too.
CREATE VIEW watchbill.steps AS
SELECT
    run.namespace,
    run.id AS workflow_id,
    attempt.call AS id,
    attempt.step AS type,
    watchbill.shown(attempt.args) AS payload,
    CASE attempt.state WHEN 1 THEN 'running' WHEN 4 THEN 'completed' WHEN 5 THEN 'failed' ELSE 'pending' END AS status,
    (attempt.failures + attempt.losses - (attempt.state = 1)::integer)::bigint AS retries,
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
    (attempt.failures + attempt.losses - (attempt.state = 1)::integer)::bigint AS failure_count,
    watchbill.shown(attempt.result) AS result,
    attempt.why
FROM watchbill.attempt
JOIN watchbill.run ON run.num = attempt.run
WHERE attempt.kind = 0
UNION ALL
SELECT
    run.namespace,
    run.id,
    journal.key,
    -- The key without its task (up to the last slash) and its number (.2): the step's name, unless its author chose a key.
    regexp_replace(journal.key, '^.*/|\.[0-9]+$', '', 'g'),
    NULL,
    CASE journal.outcome WHEN 0 THEN 'completed' ELSE 'failed' END,
    failed.attempts,
    NULL,
    journal.agent,
    watchbill.moment(coalesce(journal.started_at, journal.at)),
    watchbill.moment(journal.at),
    NULL,
    NULL,
    CASE journal.outcome WHEN 0 THEN 'Processed' ELSE 'Error' END,
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

-- Each run.
CREATE VIEW watchbill.workflows AS
SELECT
    run.namespace,
    run.id AS workflow_id,
    run.workflow AS type,
    run.version,
    CASE run.status
        WHEN 0 THEN 'scheduled' WHEN 1 THEN 'running' WHEN 2 THEN 'waiting' WHEN 3 THEN 'undoing' WHEN 4 THEN 'diverged'
        WHEN 10 THEN 'completed' WHEN 11 THEN 'failed' WHEN 12 THEN 'undone' WHEN 13 THEN 'undo_failed'
        WHEN 14 THEN 'cancelled'
    END AS status,
    (
        SELECT string_agg(attempt.call, ', ' ORDER BY attempt.id)
        FROM watchbill.attempt
        WHERE attempt.run = run.num AND attempt.state < 4
    ) AS current_steps,
    (
        SELECT count(DISTINCT (decision.call, decision.fence))
        FROM watchbill.decision
        WHERE decision.run = run.num AND decision.actor = 'supervisor'
    ) AS retry_count,
    watchbill.moment(greatest(
        (SELECT journal.at FROM watchbill.journal WHERE journal.run = run.num ORDER BY journal.seq DESC LIMIT 1),
        (
            SELECT max(greatest(attempt.started_at, attempt.progress_at))
            FROM watchbill.attempt
            WHERE attempt.run = run.num AND attempt.state = 1
        ),
        coalesce(run.begun_at, run.created_at)
    )) AS last_heartbeat,
    watchbill.moment(run.deadline) AS timeout_deadline,
    run.priority,
    run.paused,
    run.held,
    run.waits AS waits_for,
    array_to_string(run.tags, ', ') AS tags,
    (SELECT parent.id FROM watchbill.run AS parent WHERE parent.num = run.parent) AS parent_id,
    watchbill.moment(run.wake_at) AS wakes_at,
    watchbill.moment(run.created_at) AS created_at,
    watchbill.moment(run.begun_at) AS started_at,
    watchbill.moment(run.ended_at) AS ended_at
FROM watchbill.run;
