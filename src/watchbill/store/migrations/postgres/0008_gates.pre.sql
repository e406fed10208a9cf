-- Gates, which limited attempts must pass before they start; and incidents, which somebody must know of.

-- How many run behind a gate is counted, never kept. Tokens are as of tokens_at, by the server's clock; said: the id of
-- the attempt whose policy gave the numbers; no index has a column that a lease changes, so it rewrites the row in its
-- place.
CREATE TABLE watchbill.gate (
    namespace text NOT NULL,
    name text NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    at_once integer,
    starts integer,
    per bigint,
    tokens double precision NOT NULL,
    tokens_at bigint NOT NULL,
    said bigint NOT NULL,
    PRIMARY KEY (namespace, name)
) WITH (fillfactor = 50);

-- Who runs behind a gate; and who waits there: gate by gate, so that many who wait behind one hide nobody.
CREATE INDEX attempt_gate ON watchbill.attempt (gate, queue) WHERE state = 1 AND gate IS NOT NULL;
CREATE INDEX attempt_limited ON watchbill.attempt (queue, gate, (alone OR losses >= 2), rank, id)
WHERE state = 0 AND NOT held AND gate IS NOT NULL;

-- state: 0 open, 1 resolved. Of each cause one is open at most.
CREATE TABLE watchbill.incident (
    id bigint PRIMARY KEY,
    namespace text NOT NULL,
    cause text NOT NULL,
    state smallint NOT NULL DEFAULT 0,
    members bigint NOT NULL,
    body bytea NOT NULL,
    opened_at bigint NOT NULL,
    resolved_at bigint
);

CREATE UNIQUE INDEX incident_open ON watchbill.incident (namespace, cause) WHERE state = 0;
CREATE INDEX incident_list ON watchbill.incident ((namespace || ''), opened_at DESC, id DESC);
