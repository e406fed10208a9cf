-- What operators have changed of the policies of steps, without a deploy; and runs that nothing moves, as members of
-- incidents.

-- body: the options that are changed, as JSON; none: all are as the code says, again. revision grows with every order in
-- the namespace, so that a scheduler sees with its look that there is news.
CREATE TABLE watchbill.policy (
    namespace text NOT NULL,
    step text NOT NULL,
    revision bigint NOT NULL,
    by text NOT NULL,
    reason text NOT NULL,
    at bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (namespace, step)
);

CREATE INDEX policy_revision ON watchbill.policy (namespace, revision);

-- incident: of a run that nothing moves: it is held, or has diverged. One that only waits for code belongs to none: there
-- is one for each code that is missing, whoever waits for it.
ALTER TABLE watchbill.run ADD COLUMN incident bigint;

-- (num + 0): an order that only this index has.
CREATE INDEX run_stuck ON watchbill.run (incident, (num + 0))
WHERE status = 4 OR substr(held, 1, 14) <> 'waits for code';

-- runs: its members are runs. ordered_as: the kind of fact by which members are told what somebody wants.
ALTER TABLE watchbill.incident
    ADD COLUMN runs boolean NOT NULL DEFAULT false,
    ADD COLUMN ordered_as text NOT NULL DEFAULT 'resolve';
