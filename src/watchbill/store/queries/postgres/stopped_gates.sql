-- Read what keeps anything of a namespace from starting: paused by somebody, or a dependency in trouble.
SELECT name, paused, breaker, paused_by, paused_why, paused_at
FROM watchbill.gate
WHERE namespace || '' = :namespace
    AND (paused OR state <> 0)
