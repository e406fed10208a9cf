-- Runs that have ended because a step failed for good, until somebody has seen to them: what the supervisor could not cure
-- is an incident, also when nothing is left to be moved. They are rows of their own: the row of a run that has ended never
-- changes, and what had ended before this is nobody's news.

-- step: that failed for good, or with undo the one that was to undo something. body: how, as the call's outcome has it.
-- incident: none until a supervisor has looked. The row goes with its run, and when somebody goes on with that or leaves it.
CREATE TABLE failed_run (
    run INTEGER PRIMARY KEY,
    step TEXT NOT NULL,
    undo INTEGER NOT NULL,
    body BLOB NOT NULL,
    at INTEGER NOT NULL,
    incident INTEGER
) STRICT;

CREATE INDEX failed_run_member ON failed_run (incident, run);

-- failed: its members are such runs. seen_at: when the newest of them ended.
ALTER TABLE incident ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE incident ADD COLUMN seen_at INTEGER;
