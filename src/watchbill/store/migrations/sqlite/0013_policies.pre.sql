-- What operators have changed of the policies of steps, without a deploy; and runs that nothing moves, as members of
-- incidents.

-- body: the options that are changed, as JSON; none: all are as the code says, again. revision grows with every order in
-- the namespace, so that a scheduler sees with its look that there is news.
CREATE TABLE policy (
    namespace TEXT NOT NULL,
    step TEXT NOT NULL,
    revision INTEGER NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (namespace, step)
) STRICT, WITHOUT ROWID;

CREATE INDEX policy_revision ON policy (namespace, revision);

-- incident: of a run that nothing moves: it is held, or has diverged. One that only waits for code belongs to none: there
-- is one for each code that is missing, whoever waits for it.
ALTER TABLE run ADD COLUMN incident INTEGER;

CREATE INDEX run_stuck ON run (incident, num)
WHERE status = 4 OR substr(held, 1, 14) <> 'waits for code';

-- runs: its members are runs. ordered_as: the kind of fact by which members are told what somebody wants.
ALTER TABLE incident ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE incident ADD COLUMN ordered_as TEXT NOT NULL DEFAULT 'resolve';
