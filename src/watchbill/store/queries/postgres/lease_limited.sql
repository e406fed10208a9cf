-- Lease rows that their gates, which this transaction has locked, let through; and take a token for each that was
-- leased: one that somebody else has locked costs nothing. Whose dependency has been found to be down meanwhile stays.
WITH chosen AS MATERIALIZED (
    SELECT id
    FROM watchbill.attempt
    WHERE id = ANY (:ids::bigint[])
        AND state = :ready::smallint
        AND NOT held
        AND queue <> ALL (ARRAY(
            SELECT queue.id
            FROM watchbill.gate
            CROSS JOIN LATERAL (
                SELECT id
                FROM watchbill.queue
                WHERE queue.namespace = gate.namespace
                    AND 'uses:' || queue.uses = gate.name
                OFFSET 0
            ) AS queue
            WHERE (gate.paused OR gate.state <> 0)
                AND (gate.namespace, gate.name) NOT IN (
                    SELECT * FROM unnest(:passing_namespaces::text[], :passing_names::text[])
                )
        ))
    ORDER BY id
    FOR UPDATE SKIP LOCKED
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
        ended_at = NULL, cancel = false, why = CASE WHEN id = ANY (:canaries::bigint[]) THEN 'canary' END, symptom = NULL, result = NULL, progress = NULL,
        progress_at = NULL
    WHERE id = ANY (ARRAY(SELECT id FROM chosen))
        AND state = :ready::smallint
    RETURNING
        id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
        started_at, ended_at, watch_at, progress_at, progress, checkpoint, policy, args, result, kind, held,
        symptom, earlier, doubt, unsure, rank
),
started AS (
    SELECT theirs.place, count(*) AS rows
    FROM unnest(:ids::bigint[], :places::bigint[]) AS theirs (id, place)
    JOIN leased ON leased.id = theirs.id
    GROUP BY theirs.place
),
spent AS (
    UPDATE watchbill.gate
    SET
        tokens = CASE WHEN gate.starts IS NULL THEN mine.tokens ELSE greatest(0, mine.tokens - started.rows) END,
        tokens_at = :tokens_at,
        said = greatest(gate.said, mine.said)
    FROM unnest(:namespaces::text[], :names::text[], :tokens::double precision[], :saids::bigint[])
        WITH ORDINALITY AS mine (namespace, name, tokens, said, place)
    JOIN started ON started.place = mine.place
    WHERE gate.namespace = mine.namespace
        AND gate.name = mine.name
)
SELECT
    id, run, run_id, part, shard, call, step, queue, state, fence, agent, failures, losses, rung, cancel, why,
    started_at, ended_at, watch_at, progress_at, progress, watchbill.whole(run, checkpoint), policy,
    watchbill.whole(run, args), result, kind, held, symptom, earlier, doubt, unsure
FROM leased
ORDER BY rank, id
