-- Several schedulers on one store: who attends, until when, and what its code knows.

-- knows: a sorted JSON array of workflow names; info: the identity of its process, as JSON.
CREATE TABLE scheduler (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    region TEXT NOT NULL,
    until INTEGER NOT NULL,
    knows TEXT NOT NULL,
    info BLOB NOT NULL
) STRICT;

-- Those who may still hold something are few; those who have left or are lost are kept, and many.
CREATE INDEX agent_alive ON agent (id) WHERE state = 1;
