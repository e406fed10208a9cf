-- Read how much waits in each queue, since when, who is there for it, and how much of it runs; of all namespaces if none
-- is named. For each queue it costs two looks into an index and a count that ends somewhere.
WITH at_work AS MATERIALIZED (
    SELECT queue, count(*) AS running
    FROM attempt
    WHERE state = 1
        AND agent > 0
    GROUP BY queue
)
SELECT
    queue.namespace, queue.id, queue.region, queue.needs, queue.uses, queue.limited,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM attempt AS ready
            WHERE ready.queue = queue.id
                AND ready.state = 0
                AND ready.held = 0
            LIMIT :most
        )
    ) AS depth,
    coalesce(
        max(
            0,
            :now - (
                SELECT min(rank)
                FROM (
                    SELECT (
                        SELECT ready.rank
                        FROM attempt AS ready
                        WHERE ready.queue = queue.id
                            AND (ready.alone OR ready.losses >= 2) = kind.value
                            AND ready.state = 0
                            AND ready.held = 0
                        ORDER BY ready.rank
                        LIMIT 1
                    ) AS rank
                    FROM json_each('[0, 1]') AS kind
                )
            )
        ),
        0
    ) AS oldest,
    (
        SELECT count(*)
        FROM agent
        WHERE agent.state = 1
            AND agent.until > :now
            AND agent.wish = 0
            AND agent.suspension IS NULL
            AND agent.namespace = queue.namespace
            AND agent.region = queue.region
            AND NOT EXISTS (
                SELECT 1
                FROM json_each(queue.needs) AS need
                WHERE substr(need.value, 1, instr(need.value || '=', '=') - 1) NOT IN (
                    SELECT substr(had.value, 1, instr(had.value || '=', '=') - 1)
                    FROM json_each(agent.needs) AS had
                )
            )
    ) AS served_by,
    coalesce((SELECT at_work.running FROM at_work WHERE +at_work.queue = queue.id), 0) AS running,
    EXISTS (
        SELECT 1
        FROM gate
        WHERE gate.namespace = queue.namespace
            AND (gate.paused OR gate.state <> 0)
            AND (gate.paused OR gate.state = 1)
            AND (
                gate.name = 'uses:' || queue.uses
                OR gate.name IN (
                    SELECT 'needs:' || substr(need.value, 1, instr(need.value || '=', '=') - 1)
                    FROM json_each(queue.needs) AS need
                )
            )
    ) AS stopped
FROM queue
WHERE :namespace IS NULL
    OR queue.namespace = :namespace
ORDER BY queue.namespace, queue.id
