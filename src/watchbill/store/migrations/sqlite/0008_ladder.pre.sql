-- The ladder: what is tried after the retries, and what nobody knows.

-- earlier: attempts that neither budget counts; doubt: of an attempt that may have taken effect.
ALTER TABLE attempt ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN doubt BLOB;

-- What waits for another agent than it had: few, and looked at when an agent goes.
CREATE INDEX attempt_avoid ON attempt (avoid) WHERE state = 0 AND avoid IS NOT NULL;

-- What took effect on another rung is done, too (outcome 5); a probe (kind 2) is a step that is asked about.
DROP VIEW steps;
CREATE VIEW steps AS
SELECT
    run.namespace AS namespace,
    run.id AS workflow_id,
    attempt.call AS id,
    attempt.step AS type,
    CASE WHEN substr(attempt.args, 1, 1) > x'01' THEN CAST(attempt.args AS TEXT) END AS payload,
    CASE attempt.state WHEN 1 THEN 'running' WHEN 4 THEN 'completed' WHEN 5 THEN 'failed' ELSE 'pending' END AS status,
    attempt.earlier + attempt.failures + attempt.losses - (attempt.state = 1) AS retries,
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
    attempt.earlier + attempt.failures + attempt.losses - (attempt.state = 1) AS failure_count,
    CASE WHEN substr(attempt.result, 1, 1) > x'01' THEN CAST(attempt.result AS TEXT) END AS result,
    attempt.why AS why
FROM attempt
JOIN run ON run.num = attempt.run
WHERE attempt.kind IN (0, 2)
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
    CASE WHEN ended.outcome IN (0, 5) THEN 'completed' ELSE 'failed' END,
    ended.failures,
    NULL,
    ended.agent,
    strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(ended.started_at, ended.at) / 1000000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', ended.at / 1000000.0, 'unixepoch'),
    NULL,
    NULL,
    CASE WHEN ended.outcome IN (0, 5) THEN 'Processed' ELSE 'Error' END,
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
