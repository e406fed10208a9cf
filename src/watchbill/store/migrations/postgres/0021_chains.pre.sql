-- What was decided about a run is linked, so that whoever changes or removes an entry later is found out.

-- last: the link that should be the last one of a run.
CREATE TABLE watchbill.chain (
    run bigint PRIMARY KEY,
    last bytea NOT NULL
);

CREATE INDEX decision_unlinked ON watchbill.decision (id) WHERE chain IS NULL;

CREATE FUNCTION watchbill.decision_only_grows() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
    RAISE EXCEPTION 'what was decided is never changed, and is linked once';
END
$$;

CREATE TRIGGER decision_only_grows BEFORE UPDATE ON watchbill.decision
FOR EACH ROW
WHEN (
    old.chain IS NOT NULL
    OR (old.id, old.run, old.call, old.fence, old.n, old.at, old.actor, old.body)
    IS DISTINCT FROM (new.id, new.run, new.call, new.fence, new.n, new.at, new.actor, new.body)
)
EXECUTE FUNCTION watchbill.decision_only_grows();
