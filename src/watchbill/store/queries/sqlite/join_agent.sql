-- Insert an agent, or prolong it if it has joined already; one that was lost stays lost.
-- What an operator wants of whom it was before, and has given to that one, stays so; and that it is suspended.
INSERT INTO agent (
    id, state, until, namespace, region, name, info, needs, slots, joined_at, beat_at, wish, suspension, judged_from
)
VALUES (
    :agent, 1, :until, :namespace, :region, :name, :info,
    coalesce((SELECT needs FROM agent WHERE id = :before), :needs), :slots, :now, :now,
    coalesce((SELECT wish FROM agent WHERE id = :before), 0),
    (SELECT suspension FROM agent WHERE id = :before),
    coalesce((SELECT judged_from FROM agent WHERE id = :before), 0)
)
ON CONFLICT (id) DO UPDATE SET until = excluded.until, beat_at = excluded.beat_at WHERE state = 1
