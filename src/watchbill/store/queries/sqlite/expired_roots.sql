-- Read roots of one workflow version that ended long ago, oldest first, from behind a place on: how many rows the tree of
-- each has, as far as that is counted, and whether a run in it is open.
SELECT
    root.num,
    root.ended_at,
    1
    + coalesce((SELECT seq FROM journal WHERE run = root.num ORDER BY seq DESC LIMIT 1), 0)
    + (SELECT count(*) FROM (SELECT 1 FROM decision WHERE run = root.num LIMIT :most))
    + (
        SELECT
            count(*)
            + coalesce(sum((SELECT seq FROM journal WHERE run = member.num ORDER BY seq DESC LIMIT 1)), 0)
            + coalesce(sum((SELECT count(*) FROM (SELECT 1 FROM decision WHERE run = member.num LIMIT :most))), 0)
        FROM (SELECT num FROM run AS child WHERE child.root = root.num AND child.parent IS NOT NULL LIMIT :most) AS member
    ),
    EXISTS (
        SELECT 1
        FROM run AS child
        WHERE child.root = root.num
            AND child.parent IS NOT NULL
            AND child.status < 10
    )
FROM run AS root
WHERE root.namespace = :namespace
    AND root.workflow = :workflow
    AND root.version = :version
    AND root.parent IS NULL
    AND root.ended_at IS NOT NULL
    AND root.ended_at <= :before
    AND (root.ended_at, root.num) > (:after, :after_num)
ORDER BY root.ended_at, root.num
LIMIT :limit
