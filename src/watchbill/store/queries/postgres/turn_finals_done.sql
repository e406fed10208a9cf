-- Delete rows that are done or given up, never one that may still move.
DELETE FROM watchbill.attempt
WHERE (SELECT whole FROM mine)
    AND id = ANY (:finals_done::bigint[] || :taken_finals::bigint[])
    AND state >= :final::smallint
RETURNING id
