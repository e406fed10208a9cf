-- Say whether a turn was written before: then all of it was, and its first key is enough to know; or that what it was told
-- is gone.
SELECT
    EXISTS (SELECT 1 FROM watchbill.journal WHERE run = :run::bigint AND seq = :seq::integer)
    OR EXISTS (SELECT 1 FROM watchbill.attempt WHERE id = :attempt::bigint)
    OR (:fact::bigint IS NOT NULL AND NOT EXISTS (SELECT 1 FROM watchbill.fact WHERE id = :fact))
