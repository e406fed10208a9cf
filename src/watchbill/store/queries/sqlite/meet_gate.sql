-- Make a gate that is new, full; a newer policy than the last one says what is allowed.
INSERT INTO gate (namespace, name, at_once, starts, per, tokens, tokens_at, said)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (namespace, name) DO UPDATE
SET at_once = excluded.at_once, starts = excluded.starts, per = excluded.per, said = excluded.said
WHERE gate.said < excluded.said
    AND (
        gate.at_once IS NOT excluded.at_once OR gate.starts IS NOT excluded.starts OR gate.per IS NOT excluded.per
    )
