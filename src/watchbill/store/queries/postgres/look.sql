-- Find what is due, told and final: per shard the oldest, so that none hides another; and when the next run or slot is
-- due. A schedule is also due when a slot of it waits for a run that has ended. (name || '': found by shard, not by name.)
-- Finals from an id on, before which the caller knows of none. The next run due may be of any code, or paused: one look
-- too many, instead of reading a million who are none of ours. What somebody has paused by its name is said, and runs of
-- such workflows do not begin. Of what operators have changed of policies, only how new it is. `small`: the bodies of all
-- finals together are no larger than the share of one run, and none of them refers to a blob. Items that the caller
-- cannot take in are left out, so that they hide no others: final rows by run, facts by id. NOT IN: hashed, for many.
WITH stopped AS MATERIALIZED (
    SELECT name
    FROM watchbill.gate
    WHERE namespace || '' = (SELECT namespace FROM watchbill.shard WHERE id = (:shards::integer[])[1])
        AND paused
        AND (paused OR state <> 0)
),
final AS MATERIALIZED (
    SELECT found.id, found.size, found.refers
    FROM unnest(:shards::integer[], :finals_from::bigint[]) AS mine (shard, lowest)
    CROSS JOIN LATERAL (
        SELECT
            id, octet_length(args) + coalesce(octet_length(result), 0) AS size,
            (octet_length(args) < 22 AND args < '\x01') OR (octet_length(result) < 22 AND result < '\x01') AS refers
        FROM watchbill.attempt
        WHERE attempt.shard = mine.shard
            AND id + 0 >= mine.lowest
            AND state >= 4
            AND run NOT IN (SELECT unnest(:left_out_finals_of::bigint[]))
        ORDER BY id + 0
        LIMIT :share::bigint
    ) AS found
)
SELECT
    (SELECT watchbill.at(:now::bigint)) AS now,
    ARRAY(
        SELECT due.num
        FROM unnest(:shards::integer[]) AS mine (shard)
        CROSS JOIN LATERAL (
            SELECT num, wake_at
            FROM watchbill.run
            WHERE run.shard = mine.shard
                AND status IN (0, 2)
                AND wake_at <= (SELECT watchbill.at(:now::bigint))
                AND (NOT paused OR status = 2)
                AND run.held IS NULL
                AND workflow || '@' || version = ANY (:known::text[])
                AND (status = 2 OR 'workflow:' || workflow <> ALL (ARRAY(SELECT name FROM stopped)))
            ORDER BY wake_at
            LIMIT :share::bigint
        ) AS due
        ORDER BY due.wake_at, due.num
    ) AS due,
    ARRAY(
        SELECT told.id
        FROM unnest(:shards::integer[]) AS mine (shard)
        CROSS JOIN LATERAL (
            SELECT id
            FROM watchbill.fact
            WHERE fact.shard = mine.shard
                AND id NOT IN (SELECT unnest(:left_out_facts::bigint[]))
            ORDER BY id + 0
            LIMIT :share::bigint
        ) AS told
    ) AS facts,
    ARRAY(SELECT id FROM final) AS finals,
    ARRAY(
        SELECT due.id
        FROM unnest(:shards::integer[]) AS mine (shard)
        CROSS JOIN LATERAL (
            SELECT id
            FROM watchbill.schedule
            WHERE schedule.shard = mine.shard
                AND wake_at <= (SELECT watchbill.at(:now::bigint))
                AND paused_by IS NULL
                AND coalesce(workflow, name) = ANY (:scheduled::text[])
            UNION
            SELECT id
            FROM watchbill.schedule
            WHERE schedule.shard = mine.shard
                AND waiting IS NOT NULL
                AND wake_at IS NOT NULL
                AND paused_by IS NULL
                AND coalesce(workflow, name) = ANY (:scheduled::text[])
                AND coalesce((SELECT run.status >= 10 FROM watchbill.run WHERE run.num = schedule.last_run), true)
            LIMIT :share::bigint
        ) AS due
    ) AS schedules,
    (
        SELECT min(later.wake_at)
        FROM unnest(:shards::integer[]) AS mine (shard)
        CROSS JOIN LATERAL (
            SELECT wake_at
            FROM watchbill.run
            WHERE run.shard = mine.shard
                AND status IN (0, 2)
                AND wake_at > (SELECT watchbill.at(:now::bigint))
            ORDER BY wake_at
            LIMIT 1
        ) AS later
    ) AS next_due,
    (
        SELECT min(later.wake_at)
        FROM unnest(:shards::integer[]) AS mine (shard)
        CROSS JOIN LATERAL (
            SELECT wake_at
            FROM watchbill.schedule
            WHERE schedule.shard = mine.shard
                AND wake_at > (SELECT watchbill.at(:now::bigint))
                AND paused_by IS NULL
                AND coalesce(workflow, name) = ANY (:scheduled::text[])
            ORDER BY wake_at
            LIMIT 1
        ) AS later
    ) AS next_slot,
    ARRAY(SELECT name FROM stopped ORDER BY name) AS stopped,
    coalesce((
        SELECT max(revision)
        FROM watchbill.policy
        WHERE namespace = (SELECT namespace FROM watchbill.shard WHERE id = (:shards::integer[])[1])
    ), 0) AS policies,
    (SELECT coalesce(sum(size) <= :most_of_run::bigint AND NOT coalesce(bool_or(refers), false), true) FROM final) AS small
