-- End what dead processes hold, at once and uncleanly: leases and agents keep their names.
-- If their silence is all there is against them, those who have beaten meanwhile are left alone.
WITH heard AS MATERIALIZED (
    SELECT id
    FROM watchbill.agent
    WHERE id = ANY (:processes::bigint[])
        AND state = :alive::smallint
        AND :unheard::boolean
        AND beat_at + least(:beat::bigint, (until - beat_at) / 4) > (SELECT watchbill.at(:now::bigint))
),
absent AS (
    DELETE FROM watchbill.scheduler
    WHERE id = ANY (:processes::bigint[])
        AND id <> ALL (ARRAY(SELECT id FROM heard))
    RETURNING id
),
unwatched AS (
    DELETE FROM watchbill.supervisor
    WHERE id = ANY (:processes::bigint[])
        AND id <> ALL (ARRAY(SELECT id FROM heard))
    RETURNING id
),
ended AS (
    UPDATE watchbill.lease
    SET until = 0
    WHERE owner = ANY (:processes::bigint[])
        AND owner <> ALL (ARRAY(SELECT id FROM heard))
        AND until > 0
    RETURNING owner
),
lost AS (
    UPDATE watchbill.agent
    SET
        state = 2,
        -- Who is only silent may live, and act until its lease has ended: that is kept.
        until = CASE WHEN :unheard::boolean THEN until ELSE least(until, (SELECT watchbill.at(:now::bigint))) END,
        gone_at = (SELECT watchbill.at(:now::bigint)),
        found = CASE WHEN :unheard::boolean THEN 'silent' ELSE 'dead' END,
        -- Who was missed when its lease ended, and was not heard since, is not told of again.
        missed_at = CASE WHEN missed_at < beat_at THEN 0 ELSE missed_at END
    WHERE id = ANY (:processes::bigint[])
        AND state = :alive::smallint
        -- Asked of the row itself: a beat that is under way is waited for, and counts.
        AND NOT (
            :unheard::boolean
            AND beat_at + least(:beat::bigint, (until - beat_at) / 4) > (SELECT watchbill.at(:now::bigint))
        )
    RETURNING id
)
SELECT id FROM absent
UNION ALL
SELECT id FROM unwatched
UNION ALL
SELECT owner FROM ended
UNION ALL
SELECT id FROM lost
