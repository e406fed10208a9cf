-- Change one run, only from a status that may become the new one (bit n of ?11 stands for status n).
UPDATE run
SET
    status = ?2, wake_at = ?3, losses = ?4, held = ?5, begun_at = ?6, part = ?7, paused = ?8, published = ?9, early = ?10,
    ended_at = CASE WHEN ?2 >= 10 THEN ?12 END
WHERE num = ?1
    AND (1 << status) & ?11
