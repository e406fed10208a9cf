-- What is remembered of how long steps take, by step and rung, and of how long runs take, by workflow and version.
-- The sketch is read, added to and written back by whoever has locked the row; at: when something was added last.
CREATE TABLE watchbill.stat (
    namespace text NOT NULL,
    step text NOT NULL,
    rung integer NOT NULL,
    sketch bytea NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (namespace, step, rung)
) WITH (fillfactor = 50);
