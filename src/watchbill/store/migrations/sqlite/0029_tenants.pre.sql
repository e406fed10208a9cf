-- ahead: the head start of a row by its priority, NULL if it has none. Rows behind different gates take turns, and the
-- wait of a row then counts from the last start behind its gate: its rank alone does not say how urgent it is.
ALTER TABLE attempt ADD COLUMN ahead INTEGER;

-- How many runs of a namespace may be open. A namespace without a row has no quota.
CREATE TABLE quota (
    namespace TEXT PRIMARY KEY,
    runs INTEGER NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
