-- Give what was accepted, with the breakers of the dependencies that it uses, as they stand.
SELECT
    id, fence, cancel, gate IS NOT NULL, agent, queue, (SELECT watchbill.at(:now::bigint)),
    (
        SELECT theirs.breaker
        FROM watchbill.queue AS its
        CROSS JOIN LATERAL (
            SELECT breaker
            FROM watchbill.gate
            WHERE its.uses <> ''
                AND gate.namespace = its.namespace
                AND gate.name = 'uses:' || its.uses
            LIMIT 1
        ) AS theirs
        WHERE its.id = accepted.queue
    )
FROM accepted
