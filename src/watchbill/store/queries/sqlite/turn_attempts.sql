-- Insert a row as ready, running or failed, nothing else; a failed one is due for a look at once.
-- Not as running when `finish` has recorded the result of that very attempt meanwhile.
INSERT INTO attempt (
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, alone, span,
    rank, started_at, watch_at, ended_at, progress, progress_at, policy, args, result
)
SELECT
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
    ?22, ?22 - ?16, ?22 + CASE WHEN ?9 = 2 THEN 0 ELSE ?17 END,
    CASE WHEN ?9 = 2 THEN ?22 END, ?18, CASE WHEN ?18 IS NOT NULL THEN ?22 END, ?19, ?20, ?21
WHERE ?9 IN (0, 1, 2)
    AND NOT (
        ?9 = 1
        AND EXISTS (
            SELECT 1
            FROM attempt AS finished
            WHERE finished.run = ?2
                AND finished.call = ?6
                AND finished.fence = ?10
                AND finished.state = 4
        )
    )
