-- Say in which region a run lives, whether a scheduler serves that, and whether one of these, if any, has its code.
SELECT
    home.region,
    EXISTS (
        SELECT 1
        FROM scheduler
        WHERE namespace = home.namespace
            AND region = home.region
            AND until > :now
    ) AS served,
    NOT EXISTS (
        SELECT 1
        FROM scheduler
        WHERE namespace = home.namespace
            AND region = home.region
            AND until > :now
    )
    OR EXISTS (
        SELECT 1
        FROM scheduler
        CROSS JOIN json_each(scheduler.knows) AS known
        WHERE namespace = home.namespace
            AND region = home.region
            AND until > :now
            AND known.value = :workflow
    )
FROM shard AS home
WHERE home.id = :shard
