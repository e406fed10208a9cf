-- Count who runs and waits behind names that are paused: of steps, workflows and capabilities; those who wait up to a limit.
-- Of a paused workflow runs wait, too, that are due and do not begin. No index has names: whoever waits is looked at.
SELECT
    gate.name,
    (
        SELECT count(*)
        FROM watchbill.attempt AS running
        CROSS JOIN LATERAL (SELECT namespace, needs FROM watchbill.queue WHERE id = running.queue LIMIT 1) AS theirs
        WHERE running.state = 1
            AND running.agent IS NOT NULL
            AND theirs.namespace = gate.namespace
            AND CASE split_part(gate.name, ':', 1)
                WHEN 'step' THEN 'step:' || running.step = gate.name
                WHEN 'workflow' THEN
                    'workflow:' || (SELECT workflow FROM watchbill.run WHERE num = running.run) = gate.name
                ELSE substr(gate.name, 7) = ANY (watchbill.need_names(theirs.needs))
            END
    ),
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM watchbill.queue AS theirs
            CROSS JOIN LATERAL (
                SELECT 1
                FROM watchbill.attempt AS waiting
                WHERE waiting.queue = theirs.id
                    AND waiting.state = 0
                    AND NOT waiting.held
                    AND CASE split_part(gate.name, ':', 1)
                        WHEN 'step' THEN 'step:' || waiting.step = gate.name
                        WHEN 'workflow' THEN
                            'workflow:' || (SELECT workflow FROM watchbill.run WHERE num = waiting.run) = gate.name
                        ELSE true
                    END
                LIMIT :most::bigint
            ) AS one
            WHERE theirs.namespace = gate.namespace
                AND (gate.name NOT LIKE 'needs:%' OR substr(gate.name, 7) = ANY (watchbill.need_names(theirs.needs)))
            LIMIT :most::bigint
        ) AS counted
    ) + (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM watchbill.shard
            CROSS JOIN LATERAL (
                SELECT 1
                FROM watchbill.run AS due
                WHERE due.shard = shard.id
                    AND due.status IN (0, 2)
                    AND due.status < 1 -- found by when they are due
                    AND due.wake_at <= (SELECT watchbill.at(:now::bigint))
                    AND NOT due.paused
                    AND due.held IS NULL
                    AND 'workflow:' || due.workflow = gate.name
                LIMIT :most::bigint
            ) AS one
            WHERE shard.namespace = gate.namespace
                AND gate.name LIKE 'workflow:%'
            LIMIT :most::bigint
        ) AS begins
    )
FROM watchbill.gate
WHERE gate.namespace || '' = :namespace
    AND (gate.paused OR gate.state <> 0)
    AND gate.paused
    AND split_part(gate.name, ':', 1) IN ('step', 'workflow', 'needs')
