-- Read whether a run has ended, whether a run in the tree under it has not, and the namespace.
SELECT
    status,
    EXISTS (
        SELECT 1
        FROM run AS child
        WHERE child.root = :root
            AND child.parent IS NOT NULL
            AND child.status < 10
    ) AS lives,
    run.namespace
FROM run
WHERE num = :root
    AND parent IS NULL
