-- ahead: the head start of a row by its priority, NULL if it has none. Rows behind different gates take turns, and the
-- wait of a row then counts from the last start behind its gate: its rank alone does not say how urgent it is.
ALTER TABLE watchbill.attempt ADD COLUMN ahead bigint;

-- How many runs of a namespace may be open. A namespace without a row has no quota.
CREATE TABLE watchbill.quota (
    namespace text PRIMARY KEY,
    runs bigint NOT NULL,
    by text NOT NULL,
    reason text NOT NULL,
    at bigint NOT NULL
);

-- A quota counts the runs of all regions. A role of one region sees no other rows of `run`, but may count them.
CREATE VIEW watchbill.run_state AS
SELECT shard, status FROM watchbill.run;
