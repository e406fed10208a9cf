-- Mark runs of these trees whose decisions are deleted, so that no supervisor links them or misses one.
INSERT INTO watchbill.chain (run, last)
SELECT member.num, ''
FROM (
    SELECT num
    FROM watchbill.run
    WHERE num = ANY (:roots::bigint[])
    UNION ALL
    SELECT num
    FROM watchbill.run
    WHERE root = ANY (:roots::bigint[])
        AND parent IS NOT NULL
) AS member
WHERE EXISTS (SELECT 1 FROM watchbill.decision WHERE run = member.num)
ORDER BY member.num
ON CONFLICT (run) DO UPDATE
SET last = excluded.last
