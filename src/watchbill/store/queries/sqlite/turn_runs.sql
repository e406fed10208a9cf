-- Change one run, only from a status that may become the new one (bit n of ?7 stands for status n).
UPDATE run
SET
    status = ?2, wake_at = ?3, losses = ?4, held = ?5, begun_at = ?6,
    ended_at = CASE WHEN ?2 >= 10 THEN ?8 END
WHERE num = ?1
    AND (1 << status) & ?7
