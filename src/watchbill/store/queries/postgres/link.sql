-- Link decisions to the chains of their runs, of each all or none: none if others have linked some meanwhile.
-- The runs and their roots are locked first: whoever deletes a tree locks its root, and has deleted all of it or nothing.
WITH there AS MATERIALIZED (
    SELECT num
    FROM watchbill.run
    WHERE num = ANY (:runs::bigint[] || ARRAY(SELECT root FROM watchbill.run WHERE num = ANY (:runs)))
    ORDER BY num
    FOR KEY SHARE
),
extended AS (
    INSERT INTO watchbill.chain AS known (run, last)
    SELECT new.run, new.last
    FROM unnest(:runs, :lasts::bytea[]) AS new (run, last)
    WHERE new.run IN (SELECT num FROM there)
    ORDER BY new.run
    ON CONFLICT (run) DO UPDATE
    SET last = excluded.last
    WHERE known.last = (:afters::bytea[])[array_position(:runs, known.run)]
    RETURNING run
)
UPDATE watchbill.decision
SET chain = new.link
FROM unnest(
    :entry_runs::bigint[], :calls::text[], :fences::bigint[], :ns::integer[], :links::bytea[]
) AS new (run, call, fence, n, link)
WHERE decision.run = new.run
    AND decision.call = new.call
    AND decision.fence = new.fence
    AND decision.n = new.n
    AND new.run = ANY (ARRAY(SELECT run FROM extended))
