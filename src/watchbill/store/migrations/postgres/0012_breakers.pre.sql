-- Dependencies, whose gates have breakers; and names that operators have paused, which are gates, too.

-- state: of the breaker of a dependency: 0 closed, 1 open, 2 half-open, 3 closing; breaker: all of it, as JSON. watch_at:
-- when a supervisor has to look at it. canary: the row, under that fence, that tries for all others.
ALTER TABLE watchbill.gate
    ADD COLUMN state smallint NOT NULL DEFAULT 0,
    ADD COLUMN watch_at bigint,
    ADD COLUMN breaker bytea NOT NULL DEFAULT '',
    ADD COLUMN canary bigint,
    ADD COLUMN canary_fence bigint,
    ADD COLUMN paused_by text,
    ADD COLUMN paused_why text,
    ADD COLUMN paused_at bigint;

-- What keeps anything from starting: few, mostly none. (name || '': to find one gate by its name is the key's.)
CREATE INDEX gate_stopped ON watchbill.gate ((namespace || ''), (name || '')) WHERE paused OR state <> 0;
