-- Dependencies, whose gates have breakers; and names that operators have paused, which are gates, too.

-- state: of the breaker of a dependency: 0 closed, 1 open, 2 half-open, 3 closing; breaker: all of it, as JSON. watch_at:
-- when a supervisor has to look at it. canary: the row, under that fence, that tries for all others.
ALTER TABLE gate ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
ALTER TABLE gate ADD COLUMN watch_at INTEGER;
ALTER TABLE gate ADD COLUMN breaker BLOB NOT NULL DEFAULT x'';
ALTER TABLE gate ADD COLUMN canary INTEGER;
ALTER TABLE gate ADD COLUMN canary_fence INTEGER;
ALTER TABLE gate ADD COLUMN paused_by TEXT;
ALTER TABLE gate ADD COLUMN paused_why TEXT;
ALTER TABLE gate ADD COLUMN paused_at INTEGER;

-- What keeps anything from starting: few, mostly none.
CREATE INDEX gate_stopped ON gate (namespace, name) WHERE paused OR state <> 0;
