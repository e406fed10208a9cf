-- Read which workflow versions have runs that have ended, with the oldest end, and whether a scheduler has their code.
WITH RECURSIVE oldest (num) AS (
    SELECT (
        SELECT num
        FROM run
        WHERE namespace = :namespace
            AND parent IS NULL
            AND ended_at IS NOT NULL
        ORDER BY workflow, version, ended_at, num
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT later.num
        FROM run AS before
        CROSS JOIN run AS later
        WHERE before.num = oldest.num
            AND later.namespace = :namespace
            AND later.parent IS NULL
            AND later.ended_at IS NOT NULL
            AND (later.workflow, later.version) > (before.workflow, before.version)
        ORDER BY later.workflow, later.version, later.ended_at, later.num
        LIMIT 1
    )
    FROM oldest
    WHERE oldest.num IS NOT NULL
)
SELECT
    run.workflow, run.version, run.ended_at,
    EXISTS (
        SELECT 1
        FROM scheduler
        CROSS JOIN json_each(scheduler.knows) AS known
        WHERE scheduler.namespace = :namespace
            AND scheduler.until > :now
            AND known.value = run.workflow || '@' || run.version
    )
FROM oldest
CROSS JOIN run ON run.num = oldest.num
