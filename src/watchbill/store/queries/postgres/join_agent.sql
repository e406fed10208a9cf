-- Insert an agent, or prolong it if it has joined already; one that was lost stays lost.
INSERT INTO watchbill.agent (id, state, until, beat_at, witness, namespace, region, name, info)
VALUES (
    :agent, 1, coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904),
    (SELECT watchbill.at(:now::bigint)), :witness, :namespace, :region, :name, :info
)
ON CONFLICT (id) DO UPDATE
    SET until = excluded.until, beat_at = excluded.beat_at, witness = excluded.witness
    WHERE agent.state = 1
