-- Supervisors that divide the work say that they are there; and what a self-audit has found is counted.

-- way: centralized or distributed; lag: how late it was at worst between its last two words, in microseconds.
CREATE TABLE supervisor (
    id INTEGER PRIMARY KEY,
    way TEXT NOT NULL,
    region TEXT NOT NULL,
    until INTEGER NOT NULL,
    info BLOB NOT NULL,
    lag INTEGER NOT NULL
) STRICT;

-- By kind; what it is called says what was wrong.
CREATE TABLE orphan (
    kind TEXT PRIMARY KEY,
    found INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
