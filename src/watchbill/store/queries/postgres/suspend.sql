-- Suspend an agent, try it for longer, or let it back, if it is as it was seen.
-- Nobody is newly suspended while none of those beside whom it failed may get work. They are locked, with it, in the order of
-- ids: of two who would suspend each other's comparison one waits, and sees it.
-- Who is let back because nobody else is left is so only while that is true: who could get work there, beside it, is one of
-- those who cannot do what it failed.
WITH there AS MATERIALIZED (
    SELECT id, suspension, wish
    FROM watchbill.agent
    WHERE id = ANY (:ids::bigint[])
        AND state = :alive::smallint
        AND until > (SELECT watchbill.at(:now::bigint))
    ORDER BY id
    FOR UPDATE
)
UPDATE watchbill.agent
SET
    suspension = :after::bytea,
    judged_from = CASE WHEN :after::bytea IS NULL THEN (SELECT watchbill.at(:now::bigint)) ELSE judged_from END
WHERE id = :agent
    AND state = :alive::smallint
    AND suspension IS NOT DISTINCT FROM :seen::bytea
    AND doings = :doings::bytea
    AND (
        :after::bytea IS NULL
        OR :seen::bytea IS NOT NULL
        OR EXISTS (SELECT 1 FROM there WHERE there.id <> :agent AND there.suspension IS NULL AND there.wish = 0)
    )
    AND (
        NOT :alone::boolean
        OR NOT EXISTS (
            SELECT 1
            FROM watchbill.agent AS other
            WHERE other.state = 1
                AND other.until > (SELECT watchbill.at(:now::bigint))
                AND other.wish = 0
                AND other.suspension IS NULL
                AND other.namespace = agent.namespace
                AND other.region = agent.region
                AND other.id <> :agent
                AND other.id <> ALL (:unable::bigint[])
        )
    )
RETURNING id
