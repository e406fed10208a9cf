-- What people ordered that is about no single run: a pause by name that is over, a policy that is cleared.
-- region: as of incidents: '*' is everybody's, '' the owner's.
CREATE TABLE watchbill.logbook (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    act text NOT NULL,
    by text NOT NULL,
    reason text NOT NULL,
    detail text NOT NULL,
    region text NOT NULL
);

CREATE INDEX logbook_at ON watchbill.logbook (at);
