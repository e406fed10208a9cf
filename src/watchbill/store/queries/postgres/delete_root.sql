-- Read whether a run has ended, whether a run in the tree under it has not, and the namespace.
SELECT
    status,
    EXISTS (
        SELECT 1
        FROM watchbill.run AS child
        WHERE child.root = :root::bigint
            AND child.parent IS NOT NULL
            AND child.status < 10
    ) AS lives,
    run.namespace
FROM watchbill.run
WHERE num = :root::bigint
    AND parent IS NULL
FOR UPDATE
