-- Read runs that were made long ago, oldest first, from behind a place on; and what time it is.
SELECT (SELECT watchbill.at(:now::bigint)) AS now, old.*
FROM (SELECT 1) AS always
LEFT JOIN LATERAL (
    SELECT num, workflow, version, status, parent IS NULL AS is_root, created_at, ended_at
    FROM watchbill.run
    WHERE namespace || '' = :namespace
        AND (created_at, num) > (:after::bigint, :after_num::bigint)
        AND created_at <= (SELECT watchbill.at(:now)) - :age::bigint
    ORDER BY created_at, num
    LIMIT :limit::bigint
) AS old ON true
