-- Calls that wait for a person: the incidents that they belong to, what was decided about those, who holds an item.

-- incident: of a parked call that waits for a person. claimed_by holds the item until claimed_until.
-- remind_at: of a question, when whoever was asked is reminded.
ALTER TABLE watchbill.attempt
    ADD COLUMN incident bigint,
    ADD COLUMN claimed_by text,
    ADD COLUMN claimed_until bigint,
    ADD COLUMN remind_at bigint;

-- What waits for a person: without an incident, by incident, and all of it. (why || ''): it is for nothing else, above all
-- not to find the rows of a run.
CREATE INDEX attempt_person ON watchbill.attempt (incident, id)
WHERE state = 3 AND (why || '') IN ('quarantine', 'escalate', 'doubt');

CREATE INDEX attempt_remind ON watchbill.attempt (remind_at) WHERE remind_at IS NOT NULL;

-- calls: its members are calls that wait for a person; of others the members are only counted. ordered: what somebody
-- wants for all of them, as the fact says it that each gets; fed_at: when the last ones got it, up to
-- the call with the number fed_to.
ALTER TABLE watchbill.incident
    ADD COLUMN calls boolean NOT NULL DEFAULT false,
    ADD COLUMN people text NOT NULL DEFAULT '',
    ADD COLUMN ordered bytea,
    ADD COLUMN ordered_by text,
    ADD COLUMN ordered_at bigint,
    ADD COLUMN per_second integer NOT NULL DEFAULT 0,
    ADD COLUMN fed_at bigint,
    ADD COLUMN fed_to bigint NOT NULL DEFAULT 0;

-- Who is told of an incident, by each route: kind 0 that it is open, 1 that it is resolved; state 0 due at due_at, 1 sent,
-- 2 given up. A route is known by its mark: an address may hold a password.
CREATE TABLE watchbill.alert (
    incident bigint NOT NULL,
    kind smallint NOT NULL,
    route text NOT NULL,
    state smallint NOT NULL DEFAULT 0,
    tries integer NOT NULL DEFAULT 0,
    due_at bigint NOT NULL,
    PRIMARY KEY (incident, kind, route)
);

CREATE INDEX alert_due ON watchbill.alert (route, due_at) WHERE state = 0;
