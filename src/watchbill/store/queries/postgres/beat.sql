-- Prolong an agent that is alive, keep the newest progress of what it runs, and say what to stop.
WITH me AS (
    UPDATE watchbill.agent
    SET
        until = coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904),
        beat_at = (SELECT watchbill.at(:now::bigint)),
        witness = :witness
    WHERE id = :agent
        AND state = 1
    RETURNING id
),
marked AS (
    UPDATE watchbill.attempt
    SET
        progress = mark.body,
        progress_at = CASE WHEN mark.increased THEN (SELECT watchbill.at(:now::bigint)) ELSE progress_at END
    FROM unnest(:ids::bigint[], :fences::bigint[], :bodies::bytea[], :increased::boolean[])
        AS mark (id, fence, body, increased)
    WHERE (SELECT count(*) FROM me) = 1
        AND attempt.id = mark.id
        AND attempt.fence = mark.fence
        AND attempt.state = :running::smallint
)
SELECT
    EXISTS (SELECT 1 FROM me),
    watchbill.at(:now::bigint),
    ARRAY(
        SELECT id
        FROM watchbill.attempt
        WHERE agent = :agent
            AND state = 1
            AND cancel
        ORDER BY id
    ),
    ARRAY(
        SELECT believed.id
        FROM unnest(:held_ids::bigint[], :held_fences::bigint[]) WITH ORDINALITY AS believed (id, fence, place)
        WHERE NOT EXISTS (
            SELECT 1
            FROM watchbill.attempt
            WHERE attempt.id = believed.id
                AND attempt.fence = believed.fence
                AND attempt.state = :running::smallint
        )
        ORDER BY place
    )
