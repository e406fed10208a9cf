-- Prolong an agent that is alive, keep what it says of itself and of what it runs, hand back what it never heard of,
-- and say what to stop, what is wanted of it, and whether there is something to do.
-- All rows are changed by one part, in the order of their ids, as everybody locks many of them: those it speaks of, and
-- those that it should have spoken of.
WITH me AS (
    UPDATE watchbill.agent
    SET
        until = coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904),
        beat_at = (SELECT watchbill.at(:now::bigint)),
        witness = :witness,
        said = CASE WHEN :said::bytea = '' THEN said ELSE :said END,
        doings = CASE WHEN :doings::bytea = '' THEN doings ELSE :doings END
    WHERE id = :agent
        AND state = 1
    RETURNING id, namespace, region, needs, wish, suspension
),
mine AS MATERIALIZED (
    SELECT id, fence, cancel, symptom, lease_no
    FROM watchbill.attempt
    WHERE agent = :agent
        AND state = 1
),
news AS MATERIALIZED (
    SELECT id, fence, body, increased, starved, false AS unheard
    FROM unnest(:ids::bigint[], :fences::bigint[], :bodies::bytea[], :increased::boolean[], :starved::boolean[])
        AS mark (id, fence, body, increased, starved)
    UNION ALL
    SELECT id, fence, NULL, false, false, unheard
    FROM (
        SELECT
            id, fence, symptom,
            coalesce(lease_no < :lease_no::bigint, false)
            AND (id, fence) NOT IN (SELECT * FROM unnest(:held_ids::bigint[], :held_fences::bigint[])) AS unheard
        FROM mine
    ) AS unsaid
    WHERE (unheard OR symptom = 'starved')
        AND id <> ALL (:ids::bigint[])
    ORDER BY id
),
changed AS (
    UPDATE watchbill.attempt
    SET
        progress = coalesce(news.body, attempt.progress),
        progress_at = CASE WHEN news.increased THEN (SELECT watchbill.at(:now::bigint)) ELSE progress_at END,
        symptom = CASE
            WHEN news.starved THEN 'starved'
            WHEN attempt.symptom = 'starved' THEN NULL
            ELSE attempt.symptom
        END,
        state = CASE WHEN news.unheard THEN CASE WHEN cancel THEN 2 ELSE 0 END ELSE attempt.state END,
        losses = losses - news.unheard::integer,
        result = CASE WHEN news.unheard AND cancel THEN :handed_back::bytea ELSE result END,
        ended_at = CASE WHEN news.unheard AND cancel THEN (SELECT watchbill.at(:now::bigint)) ELSE ended_at END,
        watch_at = CASE
            WHEN news.unheard THEN CASE WHEN cancel THEN (SELECT watchbill.at(:now::bigint)) END
            ELSE watch_at
        END
    FROM news
    WHERE (SELECT count(*) FROM me) = 1
        AND attempt.id = news.id
        AND attempt.fence = news.fence
        AND attempt.state = :running::smallint
        AND (news.body IS NOT NULL OR news.unheard OR news.starved <> coalesce(attempt.symptom = 'starved', false))
    RETURNING attempt.state, news.unheard
)
SELECT
    EXISTS (SELECT 1 FROM me),
    watchbill.at(:now::bigint),
    ARRAY(SELECT id FROM mine WHERE cancel ORDER BY id),
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
    ),
    (SELECT wish FROM me),
    (SELECT needs FROM me),
    (SELECT suspension FROM me),
    coalesce(
        (
            SELECT queue.id
            FROM me
            CROSS JOIN LATERAL (
                SELECT id
                FROM watchbill.queue
                WHERE queue.namespace || '' = me.namespace
                    AND queue.region || '' = me.region
                ORDER BY id + 0 DESC
                LIMIT 1
            ) AS queue
        ),
        0
    ),
    EXISTS (
        SELECT 1
        FROM unnest(:queues::integer[]) AS asked (queue)
        CROSS JOIN LATERAL (
            SELECT 1
            FROM watchbill.attempt
            WHERE attempt.queue = asked.queue
                AND state = 0
                AND NOT held
            LIMIT 1
        ) AS waiting
    ),
    ARRAY(SELECT DISTINCT state FROM changed WHERE unheard)
