-- Find the gates behind which rows of these queues wait, as they stand: those of the most urgent rows, and the next ones
-- by name after a place; with the policy of the newest row there. A gate costs some leaps through the index, however many
-- rows wait behind it.
WITH RECURSIVE leap (queue, gate, n) AS (
    SELECT
        mine.queue,
        (
            SELECT waiting.gate
            FROM watchbill.attempt AS waiting
            WHERE waiting.queue::bigint = mine.queue
                AND waiting.gate > mine.after
                AND waiting.state = 0
                AND NOT waiting.held
                AND waiting.gate IS NOT NULL
            ORDER BY waiting.gate
            LIMIT 1
        ),
        1
    FROM unnest(:queues::integer[], :afters::text[]) AS mine (queue, after)
    UNION ALL
    SELECT
        leap.queue,
        (
            SELECT waiting.gate
            FROM watchbill.attempt AS waiting
            WHERE waiting.queue::bigint = leap.queue
                AND waiting.gate > leap.gate
                AND waiting.state = 0
                AND NOT waiting.held
                AND waiting.gate IS NOT NULL
            ORDER BY waiting.gate
            LIMIT 1
        ),
        leap.n + 1
    FROM leap
    WHERE leap.gate IS NOT NULL
        AND leap.n < :most::integer
),
head AS (
    SELECT mine.queue, urgent.gate
    FROM unnest(:queues::integer[]) AS mine (queue)
    CROSS JOIN (VALUES (false), (true)) AS kind (lonely)
    CROSS JOIN LATERAL (
        SELECT waiting.gate
        FROM watchbill.attempt AS waiting
        WHERE waiting.queue = mine.queue
            AND (waiting.alone OR waiting.losses >= 2) = kind.lonely
            AND waiting.state = 0
            AND NOT waiting.held
        ORDER BY waiting.rank, waiting.id
        LIMIT :head::bigint
    ) AS urgent
),
found AS MATERIALIZED (
    SELECT queue, gate, max(n) AS leapt
    FROM (
        SELECT queue, gate, n FROM leap
        UNION ALL
        SELECT queue, gate, 0 FROM head
    ) AS met
    WHERE gate IS NOT NULL
    GROUP BY queue, gate
)
SELECT
    (SELECT watchbill.at(:now::bigint)), found.queue, found.leapt, its.namespace, found.gate,
    gate.at_once, gate.starts, gate.per, coalesce(gate.paused, false), coalesce(gate.tokens, 0),
    coalesce(gate.tokens_at, 0), coalesce(gate.said, 0),
    CASE WHEN gate.at_once IS NULL THEN 0 ELSE (
        SELECT count(*)
        FROM watchbill.attempt_place AS running
        WHERE running.gate = found.gate
            AND running.state = 1
            AND (SELECT namespace FROM watchbill.queue WHERE id = running.queue) = its.namespace
    ) END,
    newest.id, newest.policy,
    CASE WHEN its.uses <> '' THEN 'uses:' || its.uses END, coalesce(theirs.paused, false), theirs.breaker,
    coalesce((
        SELECT trying.fence = theirs.canary_fence AND trying.state IN (:running::smallint, :failed::smallint)
        FROM watchbill.attempt_place AS trying
        WHERE trying.id = theirs.canary
    ), false)
FROM found
CROSS JOIN LATERAL (SELECT namespace, uses FROM watchbill.queue WHERE id = found.queue LIMIT 1) AS its
LEFT JOIN LATERAL (
    SELECT * FROM watchbill.gate WHERE gate.namespace = its.namespace AND gate.name = found.gate LIMIT 1
) AS gate ON true
LEFT JOIN LATERAL (
    SELECT paused, breaker, canary, canary_fence
    FROM watchbill.gate AS dependency
    WHERE its.uses <> ''
        AND dependency.namespace = its.namespace
        AND dependency.name = 'uses:' || its.uses
    LIMIT 1
) AS theirs ON true
CROSS JOIN LATERAL (
    SELECT last.id, last.policy
    FROM (VALUES (false), (true)) AS kind (lonely)
    CROSS JOIN LATERAL (
        SELECT waiting.id, waiting.policy
        FROM watchbill.attempt AS waiting
        WHERE waiting.queue::bigint = found.queue
            AND waiting.gate = found.gate
            AND (waiting.alone OR waiting.losses >= 2) = kind.lonely
            AND waiting.state = 0
            AND NOT waiting.held
            AND waiting.gate IS NOT NULL
        ORDER BY waiting.rank DESC, waiting.id DESC
        LIMIT 1
    ) AS last
    ORDER BY last.id DESC
    LIMIT 1
) AS newest
