-- Count what waits in a queue that nothing paused keeps, and say since when, among the first so many: names are those of
-- limits, steps and workflows, as their gates have them.
SELECT count(*), min(rank)
FROM (
    SELECT rank
    FROM (
        SELECT rank, step, gate, run
        FROM (
            SELECT rank, step, gate, run
            FROM attempt
            WHERE queue = :queue
                AND (alone OR losses >= 2) = 0
                AND state = 0
                AND held = 0
            ORDER BY rank
            LIMIT :far
        )
        UNION ALL
        SELECT rank, step, gate, run
        FROM (
            SELECT rank, step, gate, run
            FROM attempt
            WHERE queue = :queue
                AND (alone OR losses >= 2) = 1
                AND state = 0
                AND held = 0
            ORDER BY rank
            LIMIT :far
        )
    ) AS first
    WHERE 'step:' || step NOT IN (SELECT value FROM json_each(:names))
        AND (gate IS NULL OR gate NOT IN (SELECT value FROM json_each(:names)))
        AND (
            NOT :workflows
            OR 'workflow:' || (SELECT run.workflow FROM run WHERE run.num = first.run)
            NOT IN (SELECT value FROM json_each(:names))
        )
)
