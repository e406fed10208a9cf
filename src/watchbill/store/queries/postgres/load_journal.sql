-- Read the journals of runs, or their next entries, each in the order in which its workflow saw it: as many as fit in
-- so many bytes, and at least one.
SELECT
    run, seq, kind, key, digest, fence, outcome, agent, started_at, at, watchbill.whole(run, body)
FROM (
    SELECT sized.*, sum(size) OVER (ORDER BY run, seq) - size AS size_before
    FROM (
        SELECT entry.*,
            CASE
                WHEN octet_length(entry.body) < 22 AND substr(entry.body, 1, 1) = '\x00' THEN (
                    SELECT coalesce(blob.size, octet_length(blob.body))
                    FROM watchbill.blob
                    WHERE blob.run = entry.run
                        AND blob.n = watchbill.referred(entry.body)
                )
                ELSE octet_length(entry.body)
            END AS size
        FROM unnest(:runs::bigint[]) AS wanted (run)
        CROSS JOIN LATERAL (
            SELECT run, seq, kind, key, digest, fence, outcome, agent, started_at, at, body
            FROM watchbill.journal
            WHERE journal.run = wanted.run
                AND seq > :after::integer
            ORDER BY seq
            LIMIT :limit::bigint
        ) AS entry
    ) AS sized
) AS page
WHERE size_before < :most::bigint
ORDER BY run, seq
