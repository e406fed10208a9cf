-- Refuse the turn if one of its rows was not inserted.
SELECT
    CASE
        WHEN whole AND (SELECT count(*) FROM attempts) < cardinality(:attempt_ids::bigint[])
            THEN watchbill.refuse(
                'a row begins as ready, running or failed, or parked for a person',
                (SELECT count(*) FROM attempts), cardinality(:attempt_ids::bigint[])
            )
    END
FROM mine
