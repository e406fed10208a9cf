-- The first schema. Times are whole microseconds of the store's own clock; "for ever" is 2^62.
-- The numbers of states are those of model/states.py; bodies are JSON, or a reference: x'00' and the number of a blob.

-- "WBLL": the header of the file says whose it is.
PRAGMA application_id = 0x57424C4C;

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- term: one counter for the whole store, so that fences grow whatever happens to shards.
-- time: no time in this store is later; the clock never starts below it.
INSERT INTO meta (key, value) VALUES ('term', 0), ('time', 0);

CREATE TABLE shard (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    region TEXT NOT NULL,
    n INTEGER NOT NULL,
    UNIQUE (namespace, region, n)
) STRICT;

-- Without owner: released cleanly. With one whose time is up: whoever takes it finds it unclean.
CREATE TABLE lease (
    role TEXT NOT NULL,
    shard INTEGER NOT NULL,
    owner INTEGER,
    term INTEGER NOT NULL DEFAULT 0,
    until INTEGER NOT NULL DEFAULT 0,
    doing INTEGER,
    unclean INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (role, shard)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    num INTEGER PRIMARY KEY,
    shard INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    workflow TEXT NOT NULL,
    version INTEGER NOT NULL,
    status INTEGER NOT NULL DEFAULT 0,
    part INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    wake_at INTEGER,
    deadline INTEGER,
    parent INTEGER,
    root INTEGER NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    held TEXT,
    tags TEXT,
    input BLOB NOT NULL,
    published BLOB,
    created_at INTEGER NOT NULL,
    begun_at INTEGER,
    ended_at INTEGER,
    UNIQUE (namespace, id)
) STRICT;

-- Scheduled and waiting: woken by time. All but waiting: looked through at a takeover, in order.
CREATE INDEX run_due ON run (shard, wake_at) WHERE status IN (0, 2);
CREATE INDEX run_live ON run (shard, num) WHERE status IN (0, 1, 3, 4);
CREATE INDEX run_list ON run (namespace, created_at DESC, num DESC);

CREATE TRIGGER run_never_goes_back BEFORE UPDATE ON run
WHEN old.status >= 10 OR (new.status = 0 AND old.status <> 0)
BEGIN
    SELECT RAISE(ABORT, 'a run that has ended never changes, and one that has begun is not scheduled again');
END;

CREATE TABLE journal (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    key TEXT NOT NULL,
    digest INTEGER,
    fence INTEGER,
    outcome INTEGER NOT NULL,
    agent INTEGER,
    started_at INTEGER,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER journal_only_grows BEFORE UPDATE ON journal
BEGIN
    SELECT RAISE(ABORT, 'the journal is append only');
END;

CREATE TABLE attempt (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    part INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    call TEXT NOT NULL,
    kind INTEGER NOT NULL DEFAULT 0,
    step TEXT NOT NULL,
    queue INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    state INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL,
    agent INTEGER,
    avoid INTEGER,
    lease_no INTEGER,
    failures INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    alone INTEGER NOT NULL DEFAULT 0,
    rung INTEGER NOT NULL DEFAULT 0,
    cancel INTEGER NOT NULL DEFAULT 0,
    gate TEXT,
    why TEXT,
    symptom TEXT,
    span INTEGER NOT NULL DEFAULT 60000,
    started_at INTEGER,
    ended_at INTEGER,
    watch_at INTEGER,
    progress_at INTEGER,
    progress BLOB,
    checkpoint BLOB,
    policy BLOB NOT NULL,
    args BLOB NOT NULL,
    result BLOB
) STRICT;

CREATE INDEX attempt_run ON attempt (run);
-- Those that need a process of their own (asked for, or lost twice) wait apart: many of them hide none of the others.
CREATE INDEX attempt_ready ON attempt (queue, (alone OR losses >= 2), rank) WHERE state = 0 AND held = 0;
CREATE INDEX attempt_watch ON attempt (watch_at) WHERE watch_at IS NOT NULL;
CREATE INDEX attempt_agent ON attempt (agent) WHERE state = 1;
CREATE INDEX attempt_final ON attempt (shard, id) WHERE state >= 4;

CREATE TABLE fact (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: a repeated turn must not consume another fact
    shard INTEGER NOT NULL,
    run INTEGER NOT NULL,
    kind TEXT NOT NULL,
    ref TEXT NOT NULL,
    actor TEXT NOT NULL,
    body BLOB NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (run, kind, ref)
) STRICT;

CREATE INDEX fact_shard ON fact (shard, id);

-- One per set of needs; needs is a sorted JSON array.
CREATE TABLE queue (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    region TEXT NOT NULL,
    needs TEXT NOT NULL,
    uses TEXT NOT NULL,
    UNIQUE (namespace, region, needs, uses)
) STRICT;

CREATE TABLE agent (
    id INTEGER PRIMARY KEY,
    state INTEGER NOT NULL,
    until INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    region TEXT NOT NULL,
    name TEXT NOT NULL,
    lease_no INTEGER NOT NULL DEFAULT -1, -- the last one that got rows
    info BLOB NOT NULL
) STRICT;

CREATE TABLE decision (
    run INTEGER NOT NULL,
    call TEXT NOT NULL,
    fence INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    body BLOB NOT NULL,
    chain BLOB,
    PRIMARY KEY (run, call, fence, n)
) STRICT;

CREATE TABLE blob (
    run INTEGER NOT NULL,
    n INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, n)
) STRICT;

-- A blob goes with the reference to it. A reference is short: longer bodies are not even read to find out.
CREATE TRIGGER attempt_blobs_go_with_it AFTER DELETE ON attempt
WHEN (length(old.args) < 22 AND substr(old.args, 1, 1) = x'00')
    OR (length(old.result) < 22 AND substr(old.result, 1, 1) = x'00')
    OR (length(old.checkpoint) < 22 AND substr(old.checkpoint, 1, 1) = x'00')
BEGIN
    DELETE FROM blob
    WHERE run = old.run
        AND n IN (
            SELECT CAST(CAST(substr(body, 2) AS TEXT) AS INTEGER)
            FROM (SELECT old.args AS body UNION ALL SELECT old.result UNION ALL SELECT old.checkpoint)
            WHERE length(body) < 22 AND substr(body, 1, 1) = x'00'
        );
END;

CREATE TRIGGER attempt_result_replaced AFTER UPDATE OF result ON attempt
WHEN length(old.result) < 22 AND substr(old.result, 1, 1) = x'00' AND new.result IS NOT old.result
BEGIN
    DELETE FROM blob WHERE run = old.run AND n = CAST(CAST(substr(old.result, 2) AS TEXT) AS INTEGER);
END;

CREATE TRIGGER attempt_checkpoint_replaced AFTER UPDATE OF checkpoint ON attempt
WHEN length(old.checkpoint) < 22 AND substr(old.checkpoint, 1, 1) = x'00' AND new.checkpoint IS NOT old.checkpoint
BEGIN
    DELETE FROM blob WHERE run = old.run AND n = CAST(CAST(substr(old.checkpoint, 2) AS TEXT) AS INTEGER);
END;
