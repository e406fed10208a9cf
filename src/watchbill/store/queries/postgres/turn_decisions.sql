-- Insert decisions once; their keys say which.
INSERT INTO watchbill.decision (run, call, fence, n, actor, body, at)
SELECT run, call, fence, n, actor, body, now
FROM unnest(
    :decision_runs::bigint[], :decision_calls::text[], :decision_fences::bigint[], :decision_ns::integer[],
    :decision_actors::text[], :decision_bodies::bytea[]
) WITH ORDINALITY AS new (run, call, fence, n, actor, body, place)
CROSS JOIN mine
WHERE whole
ORDER BY place
ON CONFLICT DO NOTHING
