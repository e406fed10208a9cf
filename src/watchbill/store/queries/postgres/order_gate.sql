-- Pause a gate, open it again, or (paused is null) leave that as it is; gives its breaker if it is there, and the time.
UPDATE watchbill.gate
SET
    paused = coalesce(:paused::boolean, paused),
    paused_by = CASE WHEN :paused::boolean THEN :by::text WHEN :paused::boolean IS NULL THEN paused_by END,
    paused_why = CASE WHEN :paused::boolean THEN :reason::text WHEN :paused::boolean IS NULL THEN paused_why END,
    paused_at = CASE
        WHEN :paused::boolean THEN (SELECT watchbill.at(:now::bigint))
        WHEN :paused::boolean IS NULL THEN paused_at
    END
WHERE namespace = :namespace
    AND name = :name
RETURNING breaker, (SELECT watchbill.at(:now::bigint))
