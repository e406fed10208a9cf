-- Read the journals of runs, or their next entries, each in the order in which its workflow saw it.
SELECT
    entry.run, entry.seq, entry.kind, entry.key, entry.digest, entry.fence, entry.outcome, entry.agent,
    entry.started_at, entry.at, watchbill.whole(entry.run, entry.body)
FROM unnest(:runs::bigint[]) AS wanted (run)
CROSS JOIN LATERAL (
    SELECT run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
    FROM watchbill.journal
    WHERE journal.run = wanted.run
        AND seq > :after::integer
    ORDER BY seq
    LIMIT :limit::bigint
) AS entry
ORDER BY entry.run, entry.seq
