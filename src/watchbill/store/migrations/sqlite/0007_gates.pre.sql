-- Gates, which limited attempts must pass before they start; and incidents, which somebody must know of.

-- How many run behind a gate is counted, never kept. Tokens are as of tokens_at, by the store's clock; said: the id of
-- the attempt whose policy gave the numbers.
CREATE TABLE gate (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    at_once INTEGER,
    starts INTEGER,
    per INTEGER,
    tokens REAL NOT NULL,
    tokens_at INTEGER NOT NULL,
    said INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

-- Who runs behind a gate; and who waits there: gate by gate, so that many who wait behind one hide nobody.
CREATE INDEX attempt_gate ON attempt (gate, queue) WHERE state = 1 AND gate IS NOT NULL;
CREATE INDEX attempt_limited ON attempt (queue, gate, (alone OR losses >= 2), rank)
WHERE state = 0 AND held = 0 AND gate IS NOT NULL;

-- state: 0 open, 1 resolved. Of each cause one is open at most.
CREATE TABLE incident (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    cause TEXT NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    members INTEGER NOT NULL,
    body BLOB NOT NULL,
    opened_at INTEGER NOT NULL,
    resolved_at INTEGER
) STRICT;

CREATE UNIQUE INDEX incident_open ON incident (namespace, cause) WHERE state = 0;
CREATE INDEX incident_list ON incident (namespace, opened_at DESC, id DESC);
