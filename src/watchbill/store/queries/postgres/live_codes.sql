-- Read runs that do not sleep, with the code they need, and whether they have begun: some, in order after a place.
SELECT
    run.shard, run.workflow, run.version, run.id, run.num,
    run.status <> 0 AND NOT run.paused AND (run.held IS NULL OR run.held LIKE :waits_for_code::text)
FROM watchbill.run
WHERE (run.shard, run.num + 0) > (:after_shard::integer, :after_num::bigint)
    AND run.status IN (0, 1, 3, 4)
ORDER BY run.shard, run.num + 0
LIMIT :limit::bigint
