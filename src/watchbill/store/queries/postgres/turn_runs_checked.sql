-- Refuse the turn if one of its runs was not changed.
SELECT
    CASE
        WHEN whole AND (SELECT count(*) FROM runs) < cardinality(:run_nums::bigint[])
            THEN watchbill.refuse(
                'a run may not go there from where it is',
                (SELECT count(*) FROM runs), cardinality(:run_nums::bigint[])
            )
    END
FROM mine
