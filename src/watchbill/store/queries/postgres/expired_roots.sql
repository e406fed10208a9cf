-- Lock roots of one workflow version that ended long ago, oldest first, from behind a place on: how many rows the tree of
-- each has, as far as that is counted, and whether a run in it is open. Roots that another process deletes are skipped.
SELECT
    root.num,
    root.ended_at,
    1
    + coalesce((SELECT seq FROM watchbill.journal WHERE run = root.num ORDER BY seq DESC LIMIT 1), 0)
    + (SELECT count(*) FROM (SELECT 1 FROM watchbill.decision WHERE run = root.num LIMIT :most::bigint) AS few)
    + (
        SELECT
            count(*)
            + coalesce(sum((SELECT seq FROM watchbill.journal WHERE run = member.num ORDER BY seq DESC LIMIT 1)), 0)
            + coalesce(
                sum((SELECT count(*) FROM (SELECT 1 FROM watchbill.decision WHERE run = member.num LIMIT :most::bigint) AS few)), 0
            )
        FROM (
            SELECT child.num
            FROM watchbill.run AS child
            WHERE child.root = root.num
                AND child.parent IS NOT NULL
            LIMIT :most::bigint
        ) AS member
    ) AS size,
    EXISTS (
        SELECT 1
        FROM watchbill.run AS child
        WHERE child.root = root.num
            AND child.parent IS NOT NULL
            AND child.status < 10
    ) AS lives
FROM watchbill.run AS root
WHERE root.namespace = :namespace
    AND root.workflow = :workflow
    AND root.version = :version::integer
    AND root.parent IS NULL
    AND root.ended_at IS NOT NULL
    AND root.ended_at <= (SELECT watchbill.at(:now::bigint)) - :age::bigint
    AND (root.ended_at, root.num) > (:after::bigint, :after_num::bigint)
ORDER BY root.ended_at, root.num
LIMIT :limit::bigint
FOR UPDATE OF root SKIP LOCKED
