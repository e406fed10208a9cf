-- What people and their reports read: docs/sql.md. The tables below them may change, these keep their columns.
-- Times are UTC; what is sealed, or too large for its row, is not shown.

-- Each call of a step: while it has a row, as it stands; afterwards as the journal has it. What runs for less than a
-- second has no row, and is seen when it has ended. `losses` counts the attempt that runs; `rank` is the time, less a
-- minute for each point of priority. After a rewind what was done before it is there, too.
CREATE VIEW steps AS
SELECT
    run.namespace AS namespace,
    run.id AS workflow_id,
    attempt.call AS id,
    attempt.step AS type,
    CASE WHEN substr(attempt.args, 1, 1) > x'01' THEN CAST(attempt.args AS TEXT) END AS payload,
    CASE attempt.state WHEN 1 THEN 'running' WHEN 4 THEN 'completed' WHEN 5 THEN 'failed' ELSE 'pending' END AS status,
    attempt.failures + attempt.losses - (attempt.state = 1) AS retries,
    json_extract(CAST(attempt.policy AS TEXT), '$.retries') AS max_retries,
    attempt.agent AS assigned_agent,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(attempt.started_at, attempt.rank + run.priority * 60000000) / 1000000.0, 'unixepoch') AS created_at,
    strftime(
        '%Y-%m-%dT%H:%M:%fZ',
        max(
            coalesce(attempt.started_at, attempt.rank + run.priority * 60000000), coalesce(attempt.ended_at, 0), coalesce(attempt.progress_at, 0)
        ) / 1000000.0,
        'unixepoch'
    ) AS updated_at,
    CASE attempt.state WHEN 1 THEN attempt.agent END AS locked_by,
    CASE attempt.state WHEN 1 THEN strftime(
        '%Y-%m-%dT%H:%M:%fZ',
        (attempt.started_at + json_extract(CAST(attempt.policy AS TEXT), '$.timeout')) / 1000000.0,
        'unixepoch'
    ) END AS complete_by,
    CASE attempt.state
        WHEN 1 THEN 'Processing' WHEN 4 THEN 'Processed' WHEN 5 THEN 'Error' ELSE 'Pending'
    END AS process_state,
    attempt.failures + attempt.losses - (attempt.state = 1) AS failure_count,
    CASE WHEN substr(attempt.result, 1, 1) > x'01' THEN CAST(attempt.result AS TEXT) END AS result,
    attempt.why AS why
FROM attempt
JOIN run ON run.num = attempt.run
WHERE attempt.kind = 0
UNION ALL
SELECT
    run.namespace,
    run.id,
    ended.key,
    -- The key without its task (up to the last slash) and its number (.2): the step's name, unless its author chose a key.
    CASE
        WHEN rtrim(ended.name, '0123456789') LIKE '%.' AND rtrim(ended.name, '0123456789') <> ended.name
            THEN substr(ended.name, 1, length(rtrim(ended.name, '0123456789')) - 1)
        ELSE ended.name
    END,
    NULL,
    CASE ended.outcome WHEN 0 THEN 'completed' ELSE 'failed' END,
    ended.failures,
    NULL,
    ended.agent,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(ended.started_at, ended.at) / 1000000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', ended.at / 1000000.0, 'unixepoch'),
    NULL,
    NULL,
    CASE ended.outcome WHEN 0 THEN 'Processed' ELSE 'Error' END,
    ended.failures,
    CASE WHEN substr(ended.body, 1, 1) > x'01' THEN CAST(ended.body AS TEXT) END,
    NULL
FROM run
JOIN (
    SELECT
        journal.*,
        substr(journal.key, length(rtrim(journal.key, replace(journal.key, '/', ''))) + 1) AS name,
        (
            SELECT count(DISTINCT decision.fence)
            FROM decision
            WHERE decision.run = journal.run AND decision.call = journal.key AND decision.actor = 'supervisor'
        ) AS failures
    FROM journal
    WHERE journal.kind = 0
) AS ended ON ended.run = run.num;

-- Each run.
CREATE VIEW workflows AS
SELECT
    run.namespace AS namespace,
    run.id AS workflow_id,
    run.workflow AS type,
    run.version AS version,
    CASE run.status
        WHEN 0 THEN 'scheduled' WHEN 1 THEN 'running' WHEN 2 THEN 'waiting' WHEN 3 THEN 'undoing' WHEN 4 THEN 'diverged'
        WHEN 10 THEN 'completed' WHEN 11 THEN 'failed' WHEN 12 THEN 'undone' WHEN 13 THEN 'undo_failed'
        WHEN 14 THEN 'cancelled'
    END AS status,
    (SELECT group_concat(attempt.call, ', ') FROM attempt WHERE attempt.run = run.num AND attempt.state < 4) AS current_steps,
    (
        SELECT count(*)
        FROM (SELECT DISTINCT call, fence FROM decision WHERE decision.run = run.num AND decision.actor = 'supervisor')
    ) AS retry_count,
    strftime(
        '%Y-%m-%dT%H:%M:%fZ',
        max(
            coalesce((SELECT journal.at FROM journal WHERE journal.run = run.num ORDER BY journal.seq DESC LIMIT 1), 0),
            coalesce((
                SELECT max(max(coalesce(attempt.started_at, 0), coalesce(attempt.progress_at, 0)))
                FROM attempt
                WHERE attempt.run = run.num AND attempt.state = 1
            ), 0),
            coalesce(run.begun_at, run.created_at)
        ) / 1000000.0,
        'unixepoch'
    ) AS last_heartbeat,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.deadline / 1000000.0, 'unixepoch') AS timeout_deadline,
    run.priority AS priority,
    run.paused AS paused,
    run.held AS held,
    run.waits AS waits_for,
    replace(run.tags, char(31), ', ') AS tags,
    (SELECT parent.id FROM run AS parent WHERE parent.num = run.parent) AS parent_id,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.wake_at / 1000000.0, 'unixepoch') AS wakes_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.created_at / 1000000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.begun_at / 1000000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', run.ended_at / 1000000.0, 'unixepoch') AS ended_at
FROM run;
