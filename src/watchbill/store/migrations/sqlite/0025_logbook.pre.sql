-- What people ordered that is about no single run: a pause by name that is over, a policy that is cleared.
CREATE TABLE logbook (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    act TEXT NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;

CREATE INDEX logbook_at ON logbook (at);
