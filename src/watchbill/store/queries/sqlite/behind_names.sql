-- Count who runs and waits behind names that are paused: of steps, workflows and capabilities; those who wait up to a limit.
-- Of a paused workflow runs wait, too, that are due and do not begin. No index has names: whoever waits is looked at.
SELECT
    gate.name,
    (
        SELECT count(*)
        FROM attempt AS running
        CROSS JOIN queue AS theirs ON theirs.id = running.queue
        WHERE running.state = 1
            AND running.agent IS NOT NULL
            AND theirs.namespace = gate.namespace
            AND CASE substr(gate.name, 1, instr(gate.name, ':'))
                WHEN 'step:' THEN 'step:' || running.step = gate.name
                WHEN 'workflow:' THEN 'workflow:' || (SELECT workflow FROM run WHERE num = running.run) = gate.name
                ELSE gate.name IN (
                    SELECT 'needs:' || substr(need.value, 1, instr(need.value || '=', '=') - 1)
                    FROM json_each(theirs.needs) AS need
                )
            END
    ),
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM queue AS theirs
            CROSS JOIN attempt AS waiting
            WHERE theirs.namespace = gate.namespace
                AND (
                    substr(gate.name, 1, 6) <> 'needs:'
                    OR gate.name IN (
                        SELECT 'needs:' || substr(need.value, 1, instr(need.value || '=', '=') - 1)
                        FROM json_each(theirs.needs) AS need
                    )
                )
                AND waiting.queue = theirs.id
                AND waiting.state = 0
                AND waiting.held = 0
                AND CASE substr(gate.name, 1, instr(gate.name, ':'))
                    WHEN 'step:' THEN 'step:' || waiting.step = gate.name
                    WHEN 'workflow:' THEN 'workflow:' || (SELECT workflow FROM run WHERE num = waiting.run) = gate.name
                    ELSE 1
                END
            LIMIT :most
        )
    ) + CASE WHEN substr(gate.name, 1, 9) = 'workflow:' THEN (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM shard
            CROSS JOIN run AS due
            WHERE shard.namespace = gate.namespace
                AND due.shard = shard.id
                AND due.status IN (0, 2)
                AND due.status < 1 -- found by when they are due
                AND due.wake_at <= :now
                AND NOT due.paused
                AND due.held IS NULL
                AND 'workflow:' || due.workflow = gate.name
            LIMIT :most
        )
    ) ELSE 0 END
FROM gate
WHERE gate.namespace = :namespace
    AND (gate.paused OR gate.state <> 0)
    AND gate.paused
    AND substr(gate.name, 1, instr(gate.name, ':')) IN ('step:', 'workflow:', 'needs:')
