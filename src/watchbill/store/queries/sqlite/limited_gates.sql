-- Find the gates behind which rows of a queue wait, as they stand: those of the most urgent rows, and the next ones by
-- name after a place; with the policy of the newest row there. A gate costs some leaps through the index, however many
-- rows wait behind it.
WITH RECURSIVE leap (gate, n) AS (
    SELECT
        (
            SELECT min(gate)
            FROM attempt
            WHERE queue = :queue
                AND gate > :after
                AND state = 0
                AND held = 0
                AND gate IS NOT NULL
        ),
        1
    UNION ALL
    SELECT
        (
            SELECT min(attempt.gate)
            FROM attempt
            WHERE attempt.queue = :queue
                AND attempt.gate > leap.gate
                AND attempt.state = 0
                AND attempt.held = 0
                AND attempt.gate IS NOT NULL
        ),
        leap.n + 1
    FROM leap
    WHERE leap.gate IS NOT NULL
        AND leap.n < :most
),
found (gate, leapt) AS (
    SELECT gate, max(n)
    FROM (
        SELECT gate, n
        FROM leap
        UNION ALL
        SELECT gate, 0
        FROM (
            SELECT gate
            FROM attempt
            WHERE queue = :queue AND (alone OR losses >= 2) = 0 AND state = 0 AND held = 0
            ORDER BY rank
            LIMIT :head
        )
        UNION ALL
        SELECT gate, 0
        FROM (
            SELECT gate
            FROM attempt
            WHERE queue = :queue AND (alone OR losses >= 2) = 1 AND state = 0 AND held = 0
            ORDER BY rank
            LIMIT :head
        )
    )
    WHERE gate IS NOT NULL
    GROUP BY gate
),
newest (gate, leapt, id) AS MATERIALIZED (
    SELECT
        found.gate, found.leapt,
        max(
            coalesce((
                SELECT waiting.id
                FROM attempt AS waiting
                WHERE waiting.queue = :queue AND waiting.gate = found.gate AND waiting.gate IS NOT NULL
                    AND (waiting.alone OR waiting.losses >= 2) = 0 AND waiting.state = 0 AND waiting.held = 0
                ORDER BY waiting.rank DESC
                LIMIT 1
            ), 0),
            coalesce((
                SELECT waiting.id
                FROM attempt AS waiting
                WHERE waiting.queue = :queue AND waiting.gate = found.gate AND waiting.gate IS NOT NULL
                    AND (waiting.alone OR waiting.losses >= 2) = 1 AND waiting.state = 0 AND waiting.held = 0
                ORDER BY waiting.rank DESC
                LIMIT 1
            ), 0)
        )
    FROM found
)
SELECT
    its.id, newest.leapt, its.namespace, newest.gate, gate.at_once, gate.starts, gate.per, coalesce(gate.paused, 0),
    coalesce(gate.tokens, 0.0), coalesce(gate.tokens_at, 0), coalesce(gate.said, 0),
    CASE WHEN gate.at_once IS NULL THEN 0 ELSE (
        SELECT count(*)
        FROM attempt AS running
        CROSS JOIN queue AS theirs ON theirs.id = running.queue
        WHERE running.gate = newest.gate
            AND running.state = 1
            AND theirs.namespace = its.namespace
    ) END,
    newest.id, said.policy, CASE WHEN its.uses <> '' THEN 'uses:' || its.uses END, coalesce(theirs.paused, 0),
    theirs.breaker,
    EXISTS (
        SELECT 1
        FROM attempt AS trying
        WHERE trying.id = theirs.canary
            AND trying.fence = theirs.canary_fence
            AND trying.state IN (1, 2)
    )
FROM queue AS its
CROSS JOIN newest
CROSS JOIN attempt AS said ON said.id = newest.id
LEFT JOIN gate ON gate.namespace = its.namespace AND gate.name = newest.gate
LEFT JOIN gate AS theirs ON its.uses <> '' AND theirs.namespace = its.namespace AND theirs.name = 'uses:' || its.uses
WHERE its.id = :queue
