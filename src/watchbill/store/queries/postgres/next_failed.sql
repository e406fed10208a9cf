-- Take the second that begins now for members of an incident who are told what is wanted for all, if nobody else has since
-- it was seen; gives the next runs of it that had ended by then and about which nothing was done yet. One row stands for none.
WITH wanted AS MATERIALIZED (
    SELECT id, ordered_at, fed_to
    FROM watchbill.incident
    WHERE id = :incident::bigint
        AND state = :open::smallint
        AND failed
        AND ordered IS NOT NULL
        AND fed_at IS NOT DISTINCT FROM :seen::bigint
    FOR UPDATE
),
fed AS (
    UPDATE watchbill.incident
    SET fed_at = (SELECT watchbill.at(:now::bigint))
    WHERE id = (SELECT id FROM wanted)
    RETURNING fed_at -- by which whoever was given them is known: the clock would say something else a moment later
)
SELECT fed.fed_at, member.run, member.namespace, member.id
FROM wanted
CROSS JOIN fed
LEFT JOIN LATERAL (
    SELECT failed_run.run, run.namespace, run.id
    FROM watchbill.failed_run
    CROSS JOIN watchbill.run
    WHERE failed_run.incident = wanted.id
        AND failed_run.run + 0 > wanted.fed_to
        AND (failed_run.at <= wanted.ordered_at) IS TRUE
        AND run.num = failed_run.run
    ORDER BY failed_run.run + 0
    LIMIT :limit::bigint
) AS member ON true
