-- The first schema. Times are whole microseconds since 1970 of the server's own clock; "for ever" is 2^62.
-- The numbers of states are those of model/states.py; bodies are JSON, or a reference: x'00' and the number of a blob.
-- `watchbill` stands for the schema that the address names.

CREATE TABLE watchbill.meta (
    key text PRIMARY KEY,
    value bytea NOT NULL
);

-- One counter for the whole store, so that fences grow whatever happens to shards.
CREATE SEQUENCE watchbill.term;

-- The store's time: the server's clock, or what a test says it is. Ask for it in a sub-select, `(SELECT ...)`: bare it
-- is volatile, asked again for every row, and never the condition of an index.
CREATE FUNCTION watchbill.at(given bigint) RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) $$;

-- Ends the statement, and with it everything that it wrote.
CREATE FUNCTION watchbill.refuse(rule text, possible bigint, asked bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS
$$
BEGIN
    RAISE EXCEPTION '%', rule USING ERRCODE = 'WB001', DETAIL = format('%s of %s were possible', possible, asked);
END
$$;

CREATE TABLE watchbill.shard (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text NOT NULL,
    region text NOT NULL,
    n integer NOT NULL,
    UNIQUE (namespace, region, n)
);

-- Without owner: released cleanly. With one whose time is up (0: it is known to be dead): whoever takes it finds it
-- unclean.
CREATE TABLE watchbill.lease (
    role text NOT NULL,
    shard integer NOT NULL,
    owner bigint,
    term bigint NOT NULL DEFAULT 0,
    until bigint NOT NULL DEFAULT 0,
    doing bigint,
    unclean boolean NOT NULL DEFAULT false,
    PRIMARY KEY (role, shard)
) WITH (fillfactor = 30);

-- Who drives shards, as long as it says so; `knows` are the workflows of its code.
CREATE TABLE watchbill.scheduler (
    id bigint PRIMARY KEY,
    namespace text NOT NULL,
    region text NOT NULL,
    until bigint NOT NULL,
    knows text[] NOT NULL,
    info bytea NOT NULL
) WITH (fillfactor = 30);

CREATE TABLE watchbill.run (
    num bigint PRIMARY KEY,
    shard integer NOT NULL,
    namespace text NOT NULL,
    id text NOT NULL,
    workflow text NOT NULL,
    version integer NOT NULL,
    status smallint NOT NULL DEFAULT 0,
    part integer NOT NULL DEFAULT 0,
    losses integer NOT NULL DEFAULT 0,
    priority integer NOT NULL DEFAULT 0,
    wake_at bigint,
    deadline bigint,
    parent bigint,
    root bigint NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    held text,
    tags text[],
    input bytea NOT NULL,
    published bytea,
    created_at bigint NOT NULL,
    begun_at bigint,
    ended_at bigint,
    UNIQUE (namespace, id)
);

-- Bodies are stored as they are: compressing them costs more than the disk they would save.
ALTER TABLE watchbill.run ALTER COLUMN input SET STORAGE EXTERNAL;

-- Scheduled and waiting: woken by time. All but waiting: looked through at a takeover, in order.
-- (num + 0), here and below: an order that only this index has. A plan could also read the primary key in that order,
-- and throw away what is of other shards; for a shard without any that is the whole table.
CREATE INDEX run_due ON watchbill.run (shard, wake_at) WHERE status IN (0, 2);
CREATE INDEX run_live ON watchbill.run (shard, (num + 0)) WHERE status IN (0, 1, 3, 4);
-- (namespace || ''): on an empty table this index seems as good for finding one id as the one made for it.
CREATE INDEX run_list ON watchbill.run ((namespace || ''), created_at DESC, num DESC);

CREATE FUNCTION watchbill.run_never_goes_back() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
    RAISE EXCEPTION 'a run that has ended never changes, and one that has begun is not scheduled again';
END
$$;

CREATE TRIGGER run_never_goes_back BEFORE UPDATE ON watchbill.run FOR EACH ROW
WHEN (old.status >= 10 OR (new.status = 0 AND old.status <> 0))
EXECUTE FUNCTION watchbill.run_never_goes_back();

CREATE TABLE watchbill.journal (
    run bigint NOT NULL,
    seq integer NOT NULL,
    kind smallint NOT NULL,
    key text NOT NULL,
    digest bigint,
    fence bigint,
    outcome smallint NOT NULL,
    agent bigint,
    started_at bigint,
    at bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, seq)
);

ALTER TABLE watchbill.journal ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE FUNCTION watchbill.journal_only_grows() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
    RAISE EXCEPTION 'the journal is append only';
END
$$;

CREATE TRIGGER journal_only_grows BEFORE UPDATE ON watchbill.journal
EXECUTE FUNCTION watchbill.journal_only_grows();

CREATE TABLE watchbill.attempt (
    id bigint PRIMARY KEY,
    run bigint NOT NULL,
    run_id text NOT NULL,
    part integer NOT NULL,
    shard integer NOT NULL,
    call text NOT NULL,
    kind smallint NOT NULL DEFAULT 0,
    step text NOT NULL,
    queue integer NOT NULL,
    rank bigint NOT NULL,
    state smallint NOT NULL,
    held boolean NOT NULL DEFAULT false,
    fence bigint NOT NULL,
    agent bigint,
    avoid bigint,
    lease_no bigint,
    failures integer NOT NULL DEFAULT 0,
    losses integer NOT NULL DEFAULT 0,
    alone boolean NOT NULL DEFAULT false,
    rung integer NOT NULL DEFAULT 0,
    cancel boolean NOT NULL DEFAULT false,
    gate text,
    why text,
    symptom text,
    span bigint NOT NULL DEFAULT 60000,
    started_at bigint,
    ended_at bigint,
    watch_at bigint,
    progress_at bigint,
    progress bytea,
    checkpoint bytea,
    policy bytea NOT NULL,
    args bytea NOT NULL,
    result bytea
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

ALTER TABLE watchbill.attempt
    ALTER COLUMN progress SET STORAGE EXTERNAL,
    ALTER COLUMN checkpoint SET STORAGE EXTERNAL,
    ALTER COLUMN policy SET STORAGE EXTERNAL,
    ALTER COLUMN args SET STORAGE EXTERNAL,
    ALTER COLUMN result SET STORAGE EXTERNAL;

CREATE INDEX attempt_run ON watchbill.attempt (run);
-- Those that need a process of their own (asked for, or lost twice) wait apart: many of them hide none of the others.
CREATE INDEX attempt_ready ON watchbill.attempt (queue, (alone OR losses >= 2), rank, id) WHERE state = 0 AND NOT held;
CREATE INDEX attempt_watch ON watchbill.attempt (watch_at, id) WHERE watch_at IS NOT NULL;
CREATE INDEX attempt_agent ON watchbill.attempt (agent) WHERE state = 1;
CREATE INDEX attempt_final ON watchbill.attempt (shard, (id + 0)) WHERE state >= 4;

CREATE TABLE watchbill.fact (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- never used again: a repeated turn must not consume another
    shard integer NOT NULL,
    run bigint NOT NULL,
    kind text NOT NULL,
    ref text NOT NULL,
    actor text NOT NULL,
    body bytea NOT NULL,
    at bigint NOT NULL,
    UNIQUE (run, kind, ref)
);

CREATE INDEX fact_shard ON watchbill.fact (shard, (id + 0));

-- One per set of needs; needs are sorted and distinct.
CREATE TABLE watchbill.queue (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text NOT NULL,
    region text NOT NULL,
    needs text[] NOT NULL,
    uses text NOT NULL,
    UNIQUE (namespace, region, needs, uses)
);

CREATE TABLE watchbill.agent (
    id bigint PRIMARY KEY,
    state smallint NOT NULL,
    until bigint NOT NULL,
    namespace text NOT NULL,
    region text NOT NULL,
    name text NOT NULL,
    info bytea NOT NULL
) WITH (fillfactor = 30);

-- Those who may still hold something are few; those who have left or are lost are kept, and many.
CREATE INDEX agent_alive ON watchbill.agent (id) WHERE state = 1;

-- id: the order in which they were made.
CREATE TABLE watchbill.decision (
    id bigint GENERATED ALWAYS AS IDENTITY,
    run bigint NOT NULL,
    call text NOT NULL,
    fence bigint NOT NULL,
    n integer NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL,
    body bytea NOT NULL,
    chain bytea,
    PRIMARY KEY (run, call, fence, n)
);

CREATE TABLE watchbill.blob (
    run bigint NOT NULL,
    n bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, n)
);

ALTER TABLE watchbill.blob ALTER COLUMN body SET STORAGE EXTERNAL;

-- The number of the blob that a body refers to; null when it is itself the body. A reference is short: longer bodies
-- are not even fetched to find out.
CREATE FUNCTION watchbill.referred(body bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
$$
BEGIN
    IF octet_length(body) < 22 AND substr(body, 1, 1) = '\x00' THEN
        RETURN convert_from(substr(body, 2), 'UTF8')::bigint;
    END IF;
    RETURN NULL;
END
$$;

-- The blob that a reference stands for, as of the statement that asks.
CREATE FUNCTION watchbill.referred_body(owner bigint, reference bytea) RETURNS bytea LANGUAGE plpgsql STABLE AS
$$
DECLARE
    large bytea;
BEGIN
    SELECT body INTO large FROM watchbill.blob WHERE run = owner AND n = watchbill.referred(reference);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'blob % of run % is missing', watchbill.referred(reference), owner USING ERRCODE = 'WB002';
    END IF;
    RETURN large;
END
$$;

-- What a row stores, made whole. So simple that it becomes part of the statement: a small body costs no call.
CREATE FUNCTION watchbill.whole(owner bigint, stored bytea) RETURNS bytea LANGUAGE sql STABLE AS
$$ SELECT CASE WHEN substr(stored, 1, 1) = '\x00' THEN watchbill.referred_body(owner, stored) ELSE stored END $$;

-- A blob goes with the reference to it.
CREATE FUNCTION watchbill.attempt_blobs_go() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM watchbill.blob
        WHERE run = old.run
            AND n = ANY (ARRAY[
                watchbill.referred(old.args), watchbill.referred(old.result), watchbill.referred(old.checkpoint)
            ]);
    ELSE
        DELETE FROM watchbill.blob
        WHERE run = old.run
            AND n = ANY (ARRAY[
                CASE WHEN new.result IS DISTINCT FROM old.result THEN watchbill.referred(old.result) END,
                CASE WHEN new.checkpoint IS DISTINCT FROM old.checkpoint THEN watchbill.referred(old.checkpoint) END
            ]);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER attempt_blobs_go_with_it AFTER DELETE ON watchbill.attempt FOR EACH ROW
WHEN (
    (octet_length(old.args) < 22 AND substr(old.args, 1, 1) = '\x00')
    OR (octet_length(old.result) < 22 AND substr(old.result, 1, 1) = '\x00')
    OR (octet_length(old.checkpoint) < 22 AND substr(old.checkpoint, 1, 1) = '\x00')
)
EXECUTE FUNCTION watchbill.attempt_blobs_go();

CREATE TRIGGER attempt_body_replaced AFTER UPDATE OF result, checkpoint ON watchbill.attempt FOR EACH ROW
WHEN (
    (octet_length(old.result) < 22 AND substr(old.result, 1, 1) = '\x00' AND new.result IS DISTINCT FROM old.result)
    OR (
        octet_length(old.checkpoint) < 22 AND substr(old.checkpoint, 1, 1) = '\x00'
        AND new.checkpoint IS DISTINCT FROM old.checkpoint
    )
)
EXECUTE FUNCTION watchbill.attempt_blobs_go();
