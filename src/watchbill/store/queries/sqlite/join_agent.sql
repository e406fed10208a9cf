-- Insert an agent, or prolong it if it has joined already; one that was lost stays lost.
INSERT INTO agent (id, state, until, namespace, region, name, info)
VALUES (:agent, 1, :until, :namespace, :region, :name, :info)
ON CONFLICT (id) DO UPDATE SET until = excluded.until WHERE state = 1
