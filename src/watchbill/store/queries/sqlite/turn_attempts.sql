-- Insert a row as ready, running or failed, or as parked for a person, nothing else; a failed one is due for a look at once.
-- Not as running when `finish` has recorded the result of that very attempt meanwhile.
INSERT INTO attempt (
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, alone, span,
    rank, started_at, watch_at, ended_at, progress, progress_at, policy, args, result, kind, why, held, gate
)
SELECT
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
    ?27 - ?24, ?27 - ?16, ?27 + CASE WHEN ?9 = 2 THEN 0 ELSE ?17 END,
    CASE WHEN ?9 = 2 THEN ?27 END, ?18, CASE WHEN ?18 IS NOT NULL THEN ?27 END, ?19, ?20, ?21, ?22, ?23, ?25, ?26
WHERE (?9 IN (0, 1, 2) OR (?9 = 3 AND ?22 = 1))
    AND NOT (
        ?9 = 1
        AND EXISTS (
            SELECT 1
            FROM attempt AS finished
            WHERE finished.run = ?2
                AND finished.part = ?4
                AND finished.call = ?6
                AND finished.fence = ?10
                AND finished.state = 4
        )
    )
