-- Take tokens out of a gate, and remember the newest row that said what is allowed.
UPDATE gate
SET tokens = ?3, tokens_at = ?4, said = max(said, ?5)
WHERE namespace = ?1
    AND name = ?2
