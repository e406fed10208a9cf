-- Forget gates that would be made anew as they are: not paused, unused for long, their buckets full. One that is leased
-- from at this moment is waited for, and has been used. Looks at some, by name after a place; gives where to go on.
WITH page AS MATERIALIZED (
    SELECT namespace, name
    FROM watchbill.gate
    WHERE (namespace, name) > (:after_namespace::text, :after_name::text)
    ORDER BY namespace, name
    LIMIT :limit::bigint
),
gone AS (
    DELETE FROM watchbill.gate
    USING (SELECT namespace, name FROM page ORDER BY namespace COLLATE "C", name COLLATE "C") AS old
    WHERE gate.namespace = old.namespace
        AND gate.name = old.name
        AND NOT gate.paused
        AND gate.state = 0
        AND gate.tokens_at < (SELECT watchbill.at(:now::bigint)) - :idle::bigint
        AND (
            gate.starts IS NULL
            OR gate.tokens + ((SELECT watchbill.at(:now::bigint)) - gate.tokens_at)::double precision * gate.starts / gate.per
            >= greatest(1.0, gate.starts * 1000000.0 / gate.per)
        )
)
SELECT namespace, name
FROM page
ORDER BY namespace, name
OFFSET :limit::bigint - 1
