-- Find what is due for a look, what runs under an agent that is dead, whether a breaker is due, and when the next look is;
-- and, if asked for, everybody who may hold something, the agents whose session is gone, those who are lost and of whom
-- nobody was told, and whether one that is there says that threads of it run on that nobody waits for.
-- Agents at work are found by leaps through their index: it costs something per agent, not per row.
WITH RECURSIVE holder (agent) AS (
    SELECT (SELECT agent FROM watchbill.attempt WHERE state = 1 AND agent IS NOT NULL ORDER BY agent LIMIT 1)
    UNION ALL
    SELECT (
        SELECT attempt.agent
        FROM watchbill.attempt
        WHERE attempt.state = 1
            AND attempt.agent > holder.agent
        ORDER BY attempt.agent
        LIMIT 1
    )
    FROM holder
    WHERE holder.agent IS NOT NULL
),
known AS MATERIALIZED (
    SELECT
        holder.agent,
        coalesce((SELECT until FROM watchbill.agent WHERE agent.id = holder.agent AND agent.state = 1), 0) AS until
    FROM holder
    WHERE holder.agent IS NOT NULL
),
-- Each once, with the identity of its process.
there AS MATERIALIZED (
    SELECT DISTINCT ON (id) id, info
    FROM (
        SELECT id, info
        FROM watchbill.agent
        WHERE state = 1
        UNION ALL
        SELECT id, info
        FROM watchbill.scheduler
        UNION ALL
        SELECT id, info
        FROM watchbill.supervisor
    ) AS process
    WHERE :processes::boolean
    ORDER BY id
),
-- Living agents whose lease ends, and whose session was there when they last beat, and is not; locks are read once.
missing AS MATERIALIZED (
    SELECT id, beat_at, until
    FROM watchbill.agent
    WHERE :processes::boolean
        AND state = 1
        AND witness
        AND until < 4611686018427387904
        AND watchbill.witness_lock(id) <> ALL (ARRAY(
            SELECT (classid::bigint << 32) | objid::bigint
            FROM pg_locks
            WHERE locktype = 'advisory'
                AND mode = 'ShareLock'
                AND objsubid = 1
        ))
)
SELECT
    (SELECT watchbill.at(:now::bigint)) AS now,
    ARRAY(
        SELECT id
        FROM watchbill.attempt
        WHERE watch_at <= (SELECT watchbill.at(:now::bigint))
            AND (:shards::integer[] IS NULL OR shard = ANY (:shards::integer[]))
        ORDER BY watch_at, id
        LIMIT :limit::bigint
    ) AS due,
    ARRAY(
        SELECT orphan.id
        FROM known
        CROSS JOIN LATERAL (
            SELECT id
            FROM watchbill.attempt
            WHERE attempt.agent = known.agent
                AND state = 1
                AND (:shards::integer[] IS NULL OR shard = ANY (:shards::integer[]))
            LIMIT :limit::bigint
        ) AS orphan
        WHERE known.until <= CASE WHEN :expired::boolean THEN (SELECT watchbill.at(:now::bigint)) ELSE 0 END
        LIMIT :limit::bigint
    ) AS orphans,
    least(
        (
            SELECT watch_at
            FROM watchbill.attempt
            WHERE watch_at > (SELECT watchbill.at(:now::bigint))
            ORDER BY watch_at, id
            LIMIT 1
        ),
        (
            SELECT min(until)
            FROM known
            WHERE until > (SELECT watchbill.at(:now::bigint))
                AND until < 4611686018427387904
        ),
        (
            SELECT min(watch_at)
            FROM watchbill.gate
            WHERE (paused OR state <> 0)
                AND watch_at > (SELECT watchbill.at(:now::bigint))
        )
    ) AS next_at,
    EXISTS (
        SELECT 1
        FROM watchbill.gate
        WHERE (paused OR state <> 0)
            AND watch_at <= (SELECT watchbill.at(:now::bigint))
    ) AS breakers,
    -- Who has left in peace, or never was there, and holds something all the same.
    ARRAY(
        SELECT known.agent
        FROM known
        WHERE known.until = 0
            AND NOT EXISTS (SELECT 1 FROM watchbill.agent WHERE agent.id = known.agent AND agent.state IN (1, 2))
    ) AS strangers,
    ARRAY(SELECT id FROM there ORDER BY id) AS processes,
    ARRAY(SELECT info FROM there ORDER BY id) AS identities,
    ARRAY(SELECT id FROM missing ORDER BY id) AS missing,
    ARRAY(SELECT beat_at FROM missing ORDER BY id) AS beat_ats,
    ARRAY(SELECT until FROM missing ORDER BY id) AS untils,
    ARRAY(
        SELECT id
        FROM watchbill.agent
        WHERE :processes::boolean
            AND state = 2
            AND missed_at = 0
        LIMIT :limit::bigint
    ) || ARRAY(
        SELECT id
        FROM watchbill.agent
        WHERE :processes::boolean
            AND :expired::boolean
            AND state = 1
            AND until <= (SELECT watchbill.at(:now::bigint))
            AND missed_at < beat_at
    ) AS untold,
    EXISTS (
        SELECT 1
        FROM watchbill.agent
        WHERE :processes::boolean
            AND state = 1
            AND until > (SELECT watchbill.at(:now::bigint))
            AND substr(said, 1, octet_length(:says_so::bytea)) = :says_so::bytea
    ) AS abandoned
