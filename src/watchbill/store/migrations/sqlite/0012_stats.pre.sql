-- What is remembered of how long steps take, by step and rung, and of how long runs take, by workflow and version.
-- at: when something was added last.
CREATE TABLE stat (
    namespace TEXT NOT NULL,
    step TEXT NOT NULL,
    rung INTEGER NOT NULL,
    sketch BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (namespace, step, rung)
) STRICT, WITHOUT ROWID;
