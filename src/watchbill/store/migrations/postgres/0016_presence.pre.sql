-- Supervisors that divide the work say that they are there; and what a self-audit has found is counted.

-- way: centralized or distributed; lag: how late it was at worst between its last two words, in microseconds.
CREATE TABLE watchbill.supervisor (
    id bigint PRIMARY KEY,
    way text NOT NULL,
    region text NOT NULL,
    until bigint NOT NULL,
    info bytea NOT NULL,
    lag bigint NOT NULL
) WITH (fillfactor = 30);

-- By kind; what it is called says what was wrong.
CREATE TABLE watchbill.orphan (
    kind text PRIMARY KEY,
    found bigint NOT NULL,
    last_at bigint NOT NULL
);
