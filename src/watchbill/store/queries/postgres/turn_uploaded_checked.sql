-- Refuse the turn if an upload of it is not complete: the store has lost some of it, or it was discarded.
SELECT
    CASE
        WHEN whole AND (SELECT count(*) FROM uploaded) < cardinality(:uploaded_ids::bigint[])
            THEN watchbill.refuse(
                'a large body was not uploaded whole',
                (SELECT count(*) FROM uploaded), cardinality(:uploaded_ids::bigint[])
            )
    END
FROM mine
