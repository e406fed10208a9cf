-- Hold back the rows of runs that pause, and let go of those that go on.
-- But for rows that other parts of this turn delete or change: of two changes in one statement the server makes one. Those
-- that stay have it from these parts.
UPDATE watchbill.attempt
SET held = new.held
FROM unnest(:hold_runs::bigint[], :hold_helds::boolean[]) AS new (run, held)
WHERE (SELECT whole FROM mine)
    AND attempt.run = new.run
    AND attempt.run = ANY (:hold_runs::bigint[])
    AND attempt.id <> ALL (
        ARRAY(
            SELECT id FROM finals_done
            UNION ALL
            SELECT id FROM dropped
            UNION ALL
            SELECT id FROM cancelled
            UNION ALL
            SELECT id FROM decided
            UNION ALL
            SELECT id FROM released
            UNION ALL
            SELECT id FROM asked_again
        )
    )
