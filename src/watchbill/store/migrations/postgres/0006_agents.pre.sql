-- Agents that are processes of their own: what they have, what they say, what operators want of them; and what their
-- attempts have logged.

-- limited: its rows wait for more than an agent with room.
ALTER TABLE watchbill.queue
    ADD COLUMN limited boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT queue_namespace_region_needs_uses_key,
    ADD UNIQUE (namespace, region, needs, uses, limited);

-- Which one is the newest: an agent reads its queues again when there is a newer one. (namespace || '') and the
-- like: it is for nothing else, neither to find a queue by its needs nor to read all in order.
CREATE INDEX queue_newest ON watchbill.queue ((namespace || ''), (region || ''), (id + 0));

-- wish: 0 none, 1 drain, 2 quarantine; said: what it last said of itself, as JSON.
-- gone_at: when it left or was pronounced lost; 0 also of those who did before there was this column. No index may have
-- a column that a beat changes: beats rewrite the row in its place.
ALTER TABLE watchbill.agent
    ADD COLUMN needs text[] NOT NULL DEFAULT '{}',
    ADD COLUMN slots integer NOT NULL DEFAULT 0,
    ADD COLUMN joined_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN beat_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN said bytea NOT NULL DEFAULT '',
    ADD COLUMN wish smallint NOT NULL DEFAULT 0,
    ADD COLUMN gone_at bigint NOT NULL DEFAULT 0;

CREATE INDEX agent_gone ON watchbill.agent (gone_at) WHERE state <> 1;

-- The names in needs, without their amounts.
CREATE FUNCTION watchbill.need_names(needs text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT ARRAY(SELECT split_part(need, '=', 1) FROM unnest(needs) AS need) $$;

-- Until when `avoid` is honoured.
ALTER TABLE watchbill.attempt ADD COLUMN avoid_until bigint;

-- The last words of attempts that have ended.
CREATE TABLE watchbill.log (
    run bigint NOT NULL,
    call text NOT NULL,
    fence bigint NOT NULL,
    number integer NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, call, fence)
);
