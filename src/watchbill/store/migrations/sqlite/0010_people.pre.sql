-- Calls that wait for a person: the incidents that they belong to, what was decided about those, who holds an item.

-- incident: of a parked call that waits for a person. claimed_by holds the item until claimed_until.
-- remind_at: of a question, when whoever was asked is reminded.
ALTER TABLE attempt ADD COLUMN incident INTEGER;
ALTER TABLE attempt ADD COLUMN claimed_by TEXT;
ALTER TABLE attempt ADD COLUMN claimed_until INTEGER;
ALTER TABLE attempt ADD COLUMN remind_at INTEGER;

-- What waits for a person: without an incident, by incident, and all of it.
CREATE INDEX attempt_person ON attempt (incident, id)
WHERE state = 3 AND why IN ('quarantine', 'escalate', 'doubt');

CREATE INDEX attempt_remind ON attempt (remind_at) WHERE remind_at IS NOT NULL;

-- calls: its members are calls that wait for a person; of others the members are only counted. ordered: what somebody
-- wants for all of them, as the fact says it that each gets; fed_at: when the last ones got it, up to
-- the call with the number fed_to.
ALTER TABLE incident ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE incident ADD COLUMN people TEXT NOT NULL DEFAULT '';
ALTER TABLE incident ADD COLUMN ordered BLOB;
ALTER TABLE incident ADD COLUMN ordered_by TEXT;
ALTER TABLE incident ADD COLUMN ordered_at INTEGER;
ALTER TABLE incident ADD COLUMN per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE incident ADD COLUMN fed_at INTEGER;
ALTER TABLE incident ADD COLUMN fed_to INTEGER NOT NULL DEFAULT 0;

-- Who is told of an incident, by each route: kind 0 that it is open, 1 that it is resolved; state 0 due at due_at, 1 sent,
-- 2 given up. A route is known by its mark: an address may hold a password.
CREATE TABLE alert (
    incident INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    route TEXT NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (incident, kind, route)
) STRICT, WITHOUT ROWID;

CREATE INDEX alert_due ON alert (route, due_at) WHERE state = 0;
