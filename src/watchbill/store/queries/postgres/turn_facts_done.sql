-- Forget facts that were taken in.
DELETE FROM watchbill.fact
WHERE (SELECT whole FROM mine)
    AND id = ANY (:facts_done::bigint[])
