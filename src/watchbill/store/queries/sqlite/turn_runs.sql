-- Change one run, only from a status that may become the new one (bit n of ?12 stands for status n). 0 and '' are none.
-- What moves again belongs to no incident.
UPDATE run
SET
    status = ?2, wake_at = nullif(?3, 0), losses = ?4, held = nullif(?5, ''), begun_at = nullif(?6, 0), part = ?7,
    paused = ?8, pauses = ?14, published = nullif(?9, ''), early = ?10, waits = nullif(?11, ''), ended_at = CASE WHEN ?2 >= 10 THEN ?13 END,
    incident = CASE WHEN ?2 = 4 OR substr(nullif(?5, ''), 1, 14) <> 'waits for code' THEN incident END
WHERE num = ?1
    AND (1 << status) & ?12
