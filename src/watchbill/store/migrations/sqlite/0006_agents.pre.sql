-- Agents that are processes of their own: what they have, what they say, what operators want of them; and what their
-- attempts have logged.

-- limited: its rows wait for more than an agent with room. A key cannot be changed, so the table is made anew.
CREATE TABLE queue_with_limits (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    region TEXT NOT NULL,
    needs TEXT NOT NULL,
    uses TEXT NOT NULL,
    limited INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, region, needs, uses, limited)
) STRICT;

INSERT INTO queue_with_limits (id, namespace, region, needs, uses)
SELECT id, namespace, region, needs, uses
FROM queue;

DROP TABLE queue;

ALTER TABLE queue_with_limits RENAME TO queue;

-- Which one is the newest: an agent reads its queues again when there is a newer one.
CREATE INDEX queue_newest ON queue (namespace, region, id);

-- needs: a sorted JSON array; wish: 0 none, 1 drain, 2 quarantine; said: what it last said of itself, as JSON.
-- gone_at: when it left or was pronounced lost.
ALTER TABLE agent ADD COLUMN needs TEXT NOT NULL DEFAULT '[]';
ALTER TABLE agent ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent ADD COLUMN joined_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent ADD COLUMN beat_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent ADD COLUMN said BLOB NOT NULL DEFAULT x'';
ALTER TABLE agent ADD COLUMN wish INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent ADD COLUMN gone_at INTEGER NOT NULL DEFAULT 0;

CREATE INDEX agent_gone ON agent (gone_at) WHERE state <> 1;

-- Until when `avoid` is honoured.
ALTER TABLE attempt ADD COLUMN avoid_until INTEGER;

-- The last words of attempts that have ended.
CREATE TABLE log (
    run INTEGER NOT NULL,
    call TEXT NOT NULL,
    fence INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, call, fence)
) STRICT;
