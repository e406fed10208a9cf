-- Schedules: workflows that start by themselves. What a slot was decided about is kept here, not in its run: a slot is
-- not opened again when its run has been deleted.

-- timing: the part of spec that says when its slots are; if that changes, it begins anew.
-- rev: grows with every change. last_slot: everything up to here is decided; it only grows.
-- wake_at: the next slot; none when its workflow has no schedule any more.
-- waiting: slots whose run starts when last_run has ended; null, not empty.
CREATE TABLE watchbill.schedule (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text NOT NULL,
    name text NOT NULL,
    shard integer NOT NULL,
    version integer NOT NULL,
    spec bytea NOT NULL,
    timing text NOT NULL,
    input bytea NOT NULL,
    rev bigint NOT NULL DEFAULT 0,
    last_slot bigint NOT NULL,
    wake_at bigint,
    waiting bigint[],
    last_run bigint,
    paused_by text,
    paused_why text,
    paused_at bigint,
    UNIQUE (namespace, name)
) WITH (fillfactor = 50);

CREATE INDEX schedule_due ON watchbill.schedule (shard, wake_at) WHERE paused_by IS NULL;
CREATE INDEX schedule_waiting ON watchbill.schedule (shard) WHERE paused_by IS NULL AND waiting IS NOT NULL;

CREATE FUNCTION watchbill.schedule_never_goes_back() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
    RAISE EXCEPTION 'a slot that was decided is not opened again';
END
$$;

CREATE TRIGGER schedule_never_goes_back BEFORE UPDATE ON watchbill.schedule FOR EACH ROW
WHEN (new.last_slot < old.last_slot)
EXECUTE FUNCTION watchbill.schedule_never_goes_back();
