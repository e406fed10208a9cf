-- Read the last parts of runs, or their first entries, each in the order in which its workflow saw it. A deadline that
-- passed in an earlier part does not come again, so its entry (kind 10) is read, too.
SELECT
    entry.run, entry.seq, entry.kind, entry.key, entry.digest, entry.fence, entry.outcome, entry.agent,
    entry.started_at, entry.at, watchbill.whole(entry.run, entry.body)
FROM unnest(:runs::bigint[]) AS wanted (run)
CROSS JOIN LATERAL (
    SELECT coalesce(max(seq), 0) AS first
    FROM watchbill.journal
    WHERE journal.run = wanted.run
        AND kind = 9
) AS part
CROSS JOIN LATERAL (
    (
        SELECT run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
        FROM watchbill.journal
        WHERE journal.run = wanted.run
            AND seq >= part.first
        ORDER BY seq
        LIMIT :limit::bigint
    )
    UNION ALL
    SELECT run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
    FROM watchbill.journal
    WHERE journal.run = wanted.run
        AND kind = 10
        AND seq < part.first
) AS entry
ORDER BY entry.run, entry.seq
