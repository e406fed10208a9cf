-- Read how much waits in each queue, since when, who is there for it, and how much of it runs; of all namespaces if none
-- is named. For each queue it costs two looks into an index and a count that ends somewhere. Where limits, steps or
-- workflows are paused it says also how many wait that nothing of it keeps, and since when, among the first so many.
WITH at_work AS MATERIALIZED (
    SELECT queue, count(*) AS running
    FROM watchbill.attempt
    WHERE state = 1
        AND agent IS NOT NULL
    GROUP BY queue
),
-- What is paused of limits, steps and workflows, by namespace; mostly nothing.
stops AS MATERIALIZED (
    SELECT
        namespace,
        array_agg(name) AS names,
        array_agg(substr(name, 6)) FILTER (WHERE name LIKE 'step:%') AS steps,
        array_agg(substr(name, 10)) FILTER (WHERE name LIKE 'workflow:%') AS workflows
    FROM watchbill.gate
    WHERE (paused OR state <> 0)
        AND paused
        AND (name LIKE 'limit:%' OR name LIKE 'step:%' OR name LIKE 'workflow:%')
    GROUP BY namespace
)
SELECT
    queue.namespace, queue.id, queue.region, queue.needs, queue.uses, queue.limited,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM watchbill.attempt
            WHERE attempt.queue = queue.id
                AND attempt.state = 0
                AND NOT attempt.held
            LIMIT :most::bigint
        ) AS ready
    ) AS depth,
    coalesce(
        greatest(
            0,
            (SELECT watchbill.at(:now::bigint)) - least(
                (
                    SELECT attempt.rank
                    FROM watchbill.attempt
                    WHERE attempt.queue = queue.id
                        AND (attempt.alone OR attempt.losses >= 2) = false
                        AND attempt.state = 0
                        AND NOT attempt.held
                    ORDER BY attempt.rank, attempt.id
                    LIMIT 1
                ),
                (
                    SELECT attempt.rank
                    FROM watchbill.attempt
                    WHERE attempt.queue = queue.id
                        AND (attempt.alone OR attempt.losses >= 2) = true
                        AND attempt.state = 0
                        AND NOT attempt.held
                    ORDER BY attempt.rank, attempt.id
                    LIMIT 1
                )
            )
        ),
        0
    ) AS oldest,
    (
        SELECT count(*)
        FROM watchbill.agent
        WHERE agent.state = 1
            AND agent.until > (SELECT watchbill.at(:now::bigint))
            AND agent.wish = 0
            AND agent.suspension IS NULL
            AND agent.namespace = queue.namespace
            AND agent.region = queue.region
            AND watchbill.need_names(queue.needs) <@ watchbill.need_names(agent.needs)
    ) AS served_by,
    coalesce((SELECT at_work.running FROM at_work WHERE at_work.queue = queue.id), 0) AS running,
    (
        SELECT count(*)
        FROM watchbill.gate
        WHERE gate.namespace || '' = queue.namespace
            AND (gate.paused OR gate.state <> 0)
            AND (gate.paused OR gate.state = 1)
            AND (
                gate.name = 'uses:' || queue.uses
                OR substr(gate.name, 7) = ANY (watchbill.need_names(queue.needs)) AND gate.name LIKE 'needs:%'
            )
    ) > 0 AS stopped,
    moving.number AS moving,
    greatest(0, (SELECT watchbill.at(:now::bigint)) - moving.rank) AS oldest_moving
FROM watchbill.queue
LEFT JOIN LATERAL (
    SELECT
        count(ready.rank) AS number,
        min(ready.rank) AS rank
    FROM stops
    CROSS JOIN (VALUES (false), (true)) AS kind (lonely)
    LEFT JOIN LATERAL (
        SELECT first.rank
        FROM (
            SELECT attempt.rank, attempt.step, attempt.gate, attempt.run
            FROM watchbill.attempt
            WHERE attempt.queue = queue.id
                AND (attempt.alone OR attempt.losses >= 2) = kind.lonely
                AND attempt.state = 0
                AND NOT attempt.held
            ORDER BY attempt.rank, attempt.id
            LIMIT :far::bigint
        ) AS first
        WHERE (stops.steps IS NULL OR first.step <> ALL (stops.steps))
            AND (first.gate IS NULL OR first.gate <> ALL (stops.names))
            AND (
                stops.workflows IS NULL
                OR (SELECT run.workflow FROM watchbill.run WHERE run.num = first.run) <> ALL (stops.workflows)
            )
        LIMIT :most::bigint
    ) AS ready ON true
    WHERE stops.namespace = queue.namespace
    GROUP BY stops.namespace
) AS moving ON true
WHERE :namespace::text IS NULL
    OR queue.namespace = :namespace
ORDER BY queue.namespace, queue.id
