-- Write back stats that are locked.
UPDATE watchbill.stat
SET sketch = lesson.sketch, at = (SELECT watchbill.at(:now::bigint))
FROM unnest(:steps::text[], :rungs::integer[], :sketches::bytea[]) AS lesson (step, rung, sketch)
WHERE stat.namespace = :namespace
    AND stat.step = lesson.step
    AND stat.rung = lesson.rung
