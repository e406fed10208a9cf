-- Say what time it is, and whether a scheduler that is there has the code of this workflow, or none is there at all.
SELECT
    (SELECT watchbill.at(:now::bigint)),
    coalesce(bool_or(:workflow = ANY (knows)), true)
FROM watchbill.scheduler
WHERE namespace = :namespace
    AND until > (SELECT watchbill.at(:now::bigint))
