-- Make the stats of steps and rungs that have none, in the order in which everybody locks them; others stay.
INSERT INTO watchbill.stat (namespace, step, rung, sketch, at)
SELECT :namespace, step, rung, '{}', (SELECT watchbill.at(:now::bigint))
FROM unnest(:steps::text[], :rungs::integer[]) WITH ORDINALITY AS lesson (step, rung, place)
ORDER BY place
ON CONFLICT (namespace, step, rung) DO NOTHING
