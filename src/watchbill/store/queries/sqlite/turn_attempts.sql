-- Insert a row as ready, running or failed, or as parked for a person, nothing else; a failed one is due for a look at once.
-- Of a question the time for a look is that of its reminder.
-- Not as running when `finish` has recorded the result of that very attempt meanwhile.
INSERT INTO attempt (
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, alone, span,
    rank, started_at, watch_at, ended_at, progress, progress_at, policy, args, result, kind, why, held, gate,
    remind_at, unsure, acts_until, cancel, ahead
)
SELECT
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
    ?30 - ?24, ?30 - ?16, ?30 + CASE WHEN ?9 = 2 THEN 0 WHEN ?22 <> 1 THEN ?17 END,
    CASE WHEN ?9 = 2 THEN ?30 END, ?18, CASE WHEN ?18 IS NOT NULL THEN ?30 END, ?19, ?20, ?21, ?22, ?23, ?25, ?26,
    CASE WHEN ?22 = 1 THEN ?30 + ?17 END, ?27, ?28, ?29, nullif(?24, 0)
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
