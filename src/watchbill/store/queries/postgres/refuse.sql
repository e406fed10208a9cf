-- Write down results that came too late, each once: not those that are in the journal after all, by an answer that was lost.
INSERT INTO watchbill.decision (run, call, fence, n, actor, body, at)
SELECT late.run, late.call, late.fence, :n::integer, :actor::text, :body::bytea, (SELECT watchbill.at(:now::bigint))
FROM unnest(:runs::bigint[], :calls::text[], :fences::bigint[]) AS late (run, call, fence)
WHERE EXISTS (SELECT 1 FROM watchbill.run WHERE run.num = late.run)
    AND NOT EXISTS (
        SELECT 1
        FROM watchbill.journal
        WHERE journal.run = late.run
            AND journal.key = late.call
            AND journal.fence = late.fence
    )
ON CONFLICT DO NOTHING
RETURNING run
