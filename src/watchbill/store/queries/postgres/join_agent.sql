-- Insert an agent, or prolong it if it has joined already; one that was lost stays lost.
INSERT INTO watchbill.agent (id, state, until, namespace, region, name, info, needs, slots, joined_at, beat_at)
VALUES (
    :agent, 1, coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904),
    :namespace, :region, :name, :info, :needs::text[], :slots,
    (SELECT watchbill.at(:now::bigint)), (SELECT watchbill.at(:now::bigint))
)
ON CONFLICT (id) DO UPDATE SET until = excluded.until, beat_at = excluded.beat_at WHERE agent.state = 1
