-- Read how much waits in each queue, since when, who is there for it, and how much of it runs; of all namespaces if none
-- is named. For each queue it costs two looks into an index and a count that ends somewhere.
WITH at_work AS MATERIALIZED (
    SELECT queue, count(*) AS running
    FROM watchbill.attempt
    WHERE state = 1
        AND agent IS NOT NULL
    GROUP BY queue
),
paused AS MATERIALIZED (
    SELECT namespace, name
    FROM watchbill.gate
    WHERE (paused OR state <> 0)
        AND paused
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
        FROM (
            SELECT 1
            FROM paused
            CROSS JOIN LATERAL (
                SELECT 1
                FROM watchbill.attempt
                WHERE attempt.queue::bigint = queue.id
                    AND attempt.gate = paused.name
                    AND attempt.state = 0
                    AND NOT attempt.held
                    AND attempt.gate IS NOT NULL
                LIMIT :most::bigint
            ) AS ready
            WHERE paused.namespace = queue.namespace
                AND queue.limited
            LIMIT :most::bigint
        ) AS kept_back
    ) AS paused,
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
    ) > 0 AS stopped
FROM watchbill.queue
WHERE :namespace::text IS NULL
    OR queue.namespace = :namespace
ORDER BY queue.namespace, queue.id
