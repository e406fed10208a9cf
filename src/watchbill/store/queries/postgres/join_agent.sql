-- Insert an agent, or prolong it if it has joined already; one that was lost stays lost.
INSERT INTO watchbill.agent (id, state, until, namespace, region, name, info)
VALUES (
    :agent, 1, coalesce((SELECT watchbill.at(:now::bigint)) + :lasting::bigint, 4611686018427387904),
    :namespace, :region, :name, :info
)
ON CONFLICT (id) DO UPDATE SET until = excluded.until WHERE agent.state = 1
