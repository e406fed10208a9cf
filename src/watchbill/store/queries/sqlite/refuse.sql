-- Write down a result that came too late, once: unless it is in the journal after all, by an answer that was lost.
INSERT INTO decision (run, call, fence, n, actor, body, at)
SELECT run.num, ?2, ?3, ?4, ?5, ?6, ?7
FROM run
WHERE run.num = ?1
    AND NOT EXISTS (
        SELECT 1
        FROM journal
        WHERE journal.run = ?1
            AND journal.key = ?2
            AND journal.fence = ?3
    )
ON CONFLICT DO NOTHING
