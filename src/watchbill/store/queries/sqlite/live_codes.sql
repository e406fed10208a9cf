-- Read runs that do not sleep, with the code they need, and whether they have begun: some, in order after a place.
SELECT
    run.shard, run.workflow, run.version, run.id, run.num,
    run.status <> 0 AND NOT run.paused AND (run.held IS NULL OR run.held LIKE :waits_for_code)
FROM run
WHERE (run.shard, run.num) > (:after_shard, :after_num)
    AND run.status < 10
    AND run.status <> 2
ORDER BY run.shard, run.num
LIMIT :limit
