-- Runs that have ended because a step failed for good, until somebody has seen to them: what the supervisor could not cure
-- is an incident, also when nothing is left to be moved. They are rows of their own: the row of a run that has ended never
-- changes, and what had ended before this is nobody's news.

-- step: that failed for good, or with undo the one that was to undo something. body: how, as the call's outcome has it.
-- incident: none until a supervisor has looked. The row goes with its run, and when somebody goes on with that or leaves it.
CREATE TABLE watchbill.failed_run (
    run bigint PRIMARY KEY,
    step text NOT NULL,
    undo boolean NOT NULL,
    body bytea NOT NULL,
    at bigint NOT NULL,
    incident bigint
);

-- (run + 0): an order that only this index has.
CREATE INDEX failed_run_member ON watchbill.failed_run (incident, (run + 0));

-- failed: its members are such runs. seen_at: when the newest of them ended.
ALTER TABLE watchbill.incident
    ADD COLUMN failed boolean NOT NULL DEFAULT false,
    ADD COLUMN seen_at bigint;
