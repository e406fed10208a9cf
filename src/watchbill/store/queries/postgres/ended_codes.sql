-- Read which workflow versions have runs that have ended, with the oldest end, and whether a scheduler has their code.
WITH RECURSIVE oldest AS (
    (
        SELECT workflow, version, ended_at
        FROM watchbill.run
        WHERE namespace = :namespace
            AND parent IS NULL
            AND ended_at IS NOT NULL
        ORDER BY workflow, version, ended_at, num
        LIMIT 1
    )
    UNION ALL
    SELECT later.workflow, later.version, later.ended_at
    FROM oldest
    CROSS JOIN LATERAL (
        SELECT workflow, version, ended_at
        FROM watchbill.run
        WHERE namespace = :namespace
            AND parent IS NULL
            AND ended_at IS NOT NULL
            AND (workflow, version) > (oldest.workflow, oldest.version)
        ORDER BY workflow, version, ended_at, num
        LIMIT 1
    ) AS later
)
SELECT
    (SELECT watchbill.at(:now::bigint)) AS now, oldest.workflow, oldest.version, oldest.ended_at,
    EXISTS (
        SELECT 1
        FROM watchbill.scheduler
        WHERE scheduler.namespace = :namespace
            AND scheduler.until > (SELECT watchbill.at(:now::bigint))
            AND oldest.workflow || '@' || oldest.version = ANY (scheduler.knows)
    ) AS known
FROM (SELECT 1) AS always
LEFT JOIN oldest ON true
