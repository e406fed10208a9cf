-- How long runs are kept is recorded by code, and expired runs are found by an index.

-- kept: microseconds after the end of a run; NULL: for ever. A program records this for each of its workflows.
CREATE TABLE retention (
    namespace TEXT NOT NULL,
    workflow TEXT NOT NULL,
    version INTEGER NOT NULL,
    kept INTEGER,
    PRIMARY KEY (namespace, workflow, version)
) STRICT, WITHOUT ROWID;

-- Roots that have ended, by code and end: retention reads no run that stays.
CREATE INDEX run_ended ON run (namespace, workflow, version, ended_at, num) WHERE parent IS NULL AND ended_at IS NOT NULL;
