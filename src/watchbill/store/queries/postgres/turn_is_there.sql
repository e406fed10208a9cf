-- Say whether a turn was written before: then all of it was, and its first key is enough to know; or that what it was told
-- is gone. A row of another call may have the id of its row.
SELECT
    EXISTS (SELECT 1 FROM watchbill.journal WHERE run = :run::bigint AND seq = :seq::integer)
    OR EXISTS (
        SELECT 1
        FROM watchbill.attempt
        WHERE id = :attempt::bigint
            AND (run = :of_run::bigint) IS TRUE -- never found by it: it is found by its id
            AND call = :call::text
    )
    OR (:fact::bigint IS NOT NULL AND NOT EXISTS (SELECT 1 FROM watchbill.fact WHERE id = :fact))
