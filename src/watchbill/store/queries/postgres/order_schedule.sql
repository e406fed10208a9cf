-- Do what a person wants of a schedule, if it is still as they have read it; it is looked at anew, at once.
UPDATE watchbill.schedule
SET
    rev = rev + 1, waiting = :waiting::bigint[], paused_by = :paused_by::text, paused_why = :paused_why::text,
    paused_at = CASE
        WHEN :paused_by::text IS NOT NULL THEN coalesce(paused_at, (SELECT watchbill.at(:now::bigint)))
    END,
    wake_at = CASE WHEN wake_at IS NOT NULL THEN least(wake_at, (SELECT watchbill.at(:now::bigint))) END
WHERE namespace = :namespace
    AND name = :name
    AND rev = :rev::bigint
RETURNING id
