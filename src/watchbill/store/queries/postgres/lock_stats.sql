-- Lock the stats of steps and rungs, in the order in which everybody does: what is read is what is written over.
SELECT stat.step, stat.rung, stat.sketch
FROM unnest(:steps::text[], :rungs::integer[]) AS lesson (step, rung)
CROSS JOIN LATERAL (
    SELECT stat.step, stat.rung, stat.sketch
    FROM watchbill.stat
    WHERE stat.namespace = :namespace
        AND stat.step = lesson.step
        AND stat.rung = lesson.rung
    FOR UPDATE
) AS stat
