-- What a turn appends to the journal comes as one array of these: an array for each column costs twice as much, here and
-- in the client. A type of its own, not the table's: the table may get columns that running code does not know.

CREATE TYPE watchbill.journal_entry AS (
    run bigint,
    seq integer,
    kind smallint,
    key text,
    digest bigint,
    fence bigint,
    outcome smallint,
    agent bigint,
    started_at bigint,
    at bigint,
    body bytea
);
