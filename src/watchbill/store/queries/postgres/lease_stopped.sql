-- Lease as `lease` does, while something is paused by its name or in trouble.
-- What failed or was lost with this agent is left to others for a while; what is paused by its name, or uses what is down,
-- is left where it is, and whether there is such a queue is said.
-- What has failed and uses a dependency passes its gate: it is not leased here, and whether there is such is said.
-- Candidates are found without locks, twice as many as asked for, so that somebody else at the same head leaves some;
-- in each queue from a place on, before which the caller has lately found nothing.
-- Nobody is tried with what must not be repeated: its failure would leave a doubt.
-- If the namespace has a quota of attempts, that is said (2), and nothing is leased unless the caller has locked the quota
-- and asks for no more than it allows (`counted`).
WITH me AS MATERIALIZED (
    SELECT id, namespace
    FROM watchbill.agent
    WHERE id = :agent
        AND state = 1
        AND until > (SELECT watchbill.at(:now::bigint))
        AND wish = 0
        AND (suspension IS NOT NULL) = :suspended::boolean
    FOR SHARE
),
stopped AS MATERIALIZED (
    SELECT name
    FROM watchbill.gate
    WHERE namespace || '' = (SELECT namespace FROM me)
        AND (paused OR state <> 0)
),
shut AS MATERIALIZED (
    SELECT theirs.id
    FROM stopped
    CROSS JOIN LATERAL (
        SELECT id
        FROM watchbill.queue
        WHERE id = ANY (:queues::integer[])
            AND (
                stopped.name = 'uses:' || uses
                OR substr(stopped.name, 7) = ANY (watchbill.need_names(needs)) AND stopped.name LIKE 'needs:%'
            )
        OFFSET 0
    ) AS theirs
),
jumps AS MATERIALIZED (
    -- If a row has become ready anywhere in the queues since, places do not count. NULL: they do.
    SELECT last_value AS number, coalesce(last_value = :jumps::bigint, true) AS known
    FROM watchbill.jump
),
candidates AS MATERIALIZED (
    SELECT ready.id, kind.lonely, ready.rank
    FROM (VALUES (false, :slots::bigint), (true, least(:alone::bigint, :slots::bigint))) AS kind (lonely, room)
    CROSS JOIN LATERAL (
        SELECT attempt.id, attempt.rank
        FROM unnest(:queues::integer[], :lonelies::boolean[], :ranks::bigint[], :ids::bigint[])
            AS mine (queue, lonely, rank, id)
        CROSS JOIN LATERAL (
            SELECT waiting.id, waiting.rank
            FROM watchbill.attempt AS waiting
            WHERE waiting.queue = mine.queue
                AND (waiting.alone OR waiting.losses >= 2) = kind.lonely
                AND (waiting.rank, waiting.id) >= (
                    CASE WHEN (SELECT known FROM jumps) THEN mine.rank ELSE -4611686018427387904 END, mine.id
                )
                AND waiting.state = 0
                AND NOT waiting.held
                AND (:retries::boolean OR waiting.failures = 0)
                AND waiting.step = ANY (:steps::text[])
                AND (NOT :trial::boolean OR position(:unrepeatable::bytea IN waiting.policy) = 0)
                AND waiting.step <> ALL (ARRAY(SELECT substr(name, 6) FROM stopped WHERE name LIKE 'step:%'))
                AND (
                    (SELECT count(*) FROM stopped WHERE name LIKE 'workflow:%') = 0
                    OR (SELECT 'workflow:' || run.workflow FROM watchbill.run WHERE run.num = waiting.run)
                        <> ALL (ARRAY(SELECT name FROM stopped))
                )
                AND (
                    waiting.avoid IS DISTINCT FROM :agent
                    OR waiting.avoid_until <= (SELECT watchbill.at(:now::bigint))
                )
            ORDER BY waiting.rank, waiting.id
            LIMIT 2 * kind.room
        ) AS attempt
        WHERE mine.lonely = kind.lonely
            AND mine.queue <> ALL (ARRAY(SELECT id FROM shut))
        ORDER BY attempt.rank, attempt.id
        LIMIT 2 * kind.room
    ) AS ready
    WHERE EXISTS (SELECT 1 FROM me)
        AND (:counted::boolean OR NOT EXISTS (SELECT 1 FROM stopped WHERE name = 'quota.attempts'))
),
plain AS MATERIALIZED (
    SELECT id, rank
    FROM watchbill.attempt
    WHERE id = ANY (ARRAY(SELECT id FROM candidates WHERE NOT lonely))
        AND state = :ready::smallint
        AND NOT held
    ORDER BY rank, id
    LIMIT :slots::bigint
    FOR UPDATE SKIP LOCKED
),
lonely AS MATERIALIZED (
    SELECT id, rank
    FROM watchbill.attempt
    WHERE id = ANY (ARRAY(SELECT id FROM candidates WHERE lonely))
        AND state = :ready::smallint
        AND NOT held
    ORDER BY rank, id
    LIMIT least(:alone::bigint, :slots::bigint)
    FOR UPDATE SKIP LOCKED
),
chosen AS MATERIALIZED (
    SELECT id
    FROM (SELECT * FROM plain UNION ALL SELECT * FROM lonely) AS locked
    ORDER BY rank, id
    LIMIT :slots::bigint
),
leased AS (
    UPDATE watchbill.attempt
    SET
        state = 1,
        fence = greatest(
            fence + 1,
            (SELECT convert_from(value, 'UTF8')::bigint FROM watchbill.meta WHERE key = 'fence_floor')
        ),
        losses = losses + 1, agent = :agent, lease_no = :lease_no,
        started_at = (SELECT watchbill.at(:now::bigint)),
        watch_at = (SELECT watchbill.at(:now::bigint)) + span * 1000,
        ended_at = NULL, cancel = false, why = NULL, symptom = NULL, result = NULL, progress = NULL,
        progress_at = NULL
    WHERE id = ANY (ARRAY(SELECT id FROM chosen))
        AND state = :ready::smallint
    RETURNING
        id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
        started_at, ended_at, watch_at, progress_at, progress, checkpoint, policy, args, result, kind, held,
        symptom, earlier, doubt, unsure, rank, alone OR losses >= 3 AS lonely
)
SELECT
    EXISTS (SELECT 1 FROM candidates),
    CASE
        WHEN EXISTS (SELECT 1 FROM stopped WHERE name = 'quota.attempts') THEN 2
        WHEN EXISTS (SELECT 1 FROM watchbill.gate WHERE paused OR state <> 0) THEN 1
        ELSE 0
    END,
    EXISTS (SELECT 1 FROM shut) OR EXISTS (
        SELECT 1
        FROM watchbill.attempt AS failed
        WHERE NOT :retries::boolean
            AND failed.queue = ANY (:queues::integer[])
            AND failed.state = 0
            AND NOT failed.held
            AND failed.failures > 0
    ),
    (SELECT number FROM jumps), pg_current_xact_id()::text::bigint,
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
    queue, lonely, started_at, rank, id,
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, watchbill.whole(run, checkpoint), policy,
    watchbill.whole(run, args), result, kind, held, symptom, earlier, doubt, unsure
FROM (SELECT 1) AS once
LEFT JOIN leased ON true
ORDER BY rank, id
