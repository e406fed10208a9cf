-- Insert an agent, or prolong it if it has joined already; one that was lost stays lost.
INSERT INTO agent (id, state, until, namespace, region, name, info, needs, slots, joined_at, beat_at)
VALUES (:agent, 1, :until, :namespace, :region, :name, :info, :needs, :slots, :now, :now)
ON CONFLICT (id) DO UPDATE SET until = excluded.until, beat_at = excluded.beat_at WHERE state = 1
