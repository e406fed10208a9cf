-- Record what was done about orphans, each under the next number for its call and fence.
INSERT INTO watchbill.decision (run, call, fence, n, at, actor, body)
SELECT
    said.run, said.call, said.fence,
    said.place + coalesce((
        SELECT max(n)
        FROM watchbill.decision
        WHERE decision.run = said.run
            AND decision.call = said.call
            AND decision.fence = said.fence
    ), 0),
    (SELECT watchbill.at(:now::bigint)), 'supervisor', said.body
FROM (
    SELECT run, call, fence, body, row_number() OVER (PARTITION BY run, call, fence) AS place
    FROM unnest(:runs::bigint[], :calls::text[], :fences::bigint[], :bodies::bytea[]) AS given (run, call, fence, body)
) AS said
