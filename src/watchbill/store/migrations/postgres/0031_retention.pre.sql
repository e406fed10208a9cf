-- How long runs are kept is recorded by code, and expired runs are found by an index.

-- kept: microseconds after the end of a run; NULL: for ever. A program records this for each of its workflows.
CREATE TABLE watchbill.retention (
    namespace text NOT NULL,
    workflow text NOT NULL,
    version integer NOT NULL,
    kept bigint,
    PRIMARY KEY (namespace, workflow, version)
);

-- Roots that have ended, by code and end: retention reads no run that stays.
CREATE INDEX run_ended ON watchbill.run (namespace, workflow, version, ended_at, num)
WHERE parent IS NULL AND ended_at IS NOT NULL;
