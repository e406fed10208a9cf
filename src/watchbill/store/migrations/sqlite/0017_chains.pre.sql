-- What was decided about a run is linked, so that whoever changes or removes an entry later is found out.

CREATE TABLE chain (
    run INTEGER PRIMARY KEY,
    last BLOB NOT NULL -- the link that should be the last one of the run
) STRICT;

-- Of those without a link: oldest first.
CREATE INDEX decision_unlinked ON decision (chain) WHERE chain IS NULL;

CREATE TRIGGER decision_only_grows BEFORE UPDATE ON decision
WHEN old.chain IS NOT NULL
    OR (old.run, old.call, old.fence, old.n, old.at, old.actor, old.body)
    IS NOT (new.run, new.call, new.fence, new.n, new.at, new.actor, new.body)
BEGIN
    SELECT RAISE(ABORT, 'what was decided is never changed, and is linked once');
END;
