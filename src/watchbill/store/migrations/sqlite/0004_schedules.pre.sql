-- Schedules: workflows that start by themselves. What a slot was decided about is kept here, not in its run: a slot is
-- not opened again when its run has been deleted.

-- timing: the part of spec that says when its slots are; if that changes, it begins anew.
-- rev: grows with every change. last_slot: everything up to here is decided; it only grows.
-- wake_at: the next slot; none when its workflow has no schedule any more.
-- waiting: a JSON array of slots whose run starts when last_run has ended; null, not empty.
CREATE TABLE schedule (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    shard INTEGER NOT NULL,
    version INTEGER NOT NULL,
    spec BLOB NOT NULL,
    timing TEXT NOT NULL,
    input BLOB NOT NULL,
    rev INTEGER NOT NULL DEFAULT 0,
    last_slot INTEGER NOT NULL,
    wake_at INTEGER,
    waiting TEXT,
    last_run INTEGER,
    paused_by TEXT,
    paused_why TEXT,
    paused_at INTEGER,
    UNIQUE (namespace, name)
) STRICT;

CREATE INDEX schedule_due ON schedule (shard, wake_at) WHERE paused_by IS NULL;
CREATE INDEX schedule_waiting ON schedule (shard) WHERE paused_by IS NULL AND waiting IS NOT NULL;

CREATE TRIGGER schedule_never_goes_back BEFORE UPDATE OF last_slot ON schedule
WHEN new.last_slot < old.last_slot
BEGIN
    SELECT RAISE(ABORT, 'a slot that was decided is not opened again');
END;
