-- A row that becomes ready may have a rank before the place from which an agent reads its queue: an urgent call, a retry,
-- an attempt that is handed back, a call of a run that goes on, or of a gate that is open again. A lease compares this
-- number with the one it knows, and reads the whole queue if they differ. A sequence, because a row in a table would
-- leave a dead version for each jump, and the place exists only because dead versions cannot always be removed.
CREATE SEQUENCE watchbill.jump;
-- The first number that is drawn from a new sequence does not change its last value.
SELECT setval('watchbill.jump', 1);

CREATE FUNCTION watchbill.jumped() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
    PERFORM nextval('watchbill.jump');
    RETURN NULL;
END
$$;

-- Not at an insert: the turn counts the jumps of urgent calls itself, because ordinary calls come last in their queue.
CREATE TRIGGER attempt_jumped
AFTER UPDATE OF state, held, avoid, rank, queue ON watchbill.attempt
FOR EACH ROW
WHEN (NEW.state = 0 AND NOT NEW.held)
EXECUTE FUNCTION watchbill.jumped();

CREATE TRIGGER gate_jumped
AFTER UPDATE OF paused, state ON watchbill.gate
FOR EACH ROW
WHEN ((OLD.paused AND NOT NEW.paused) OR OLD.state <> NEW.state)
EXECUTE FUNCTION watchbill.jumped();

CREATE TRIGGER gate_dropped
AFTER DELETE ON watchbill.gate
FOR EACH ROW
WHEN (OLD.paused OR OLD.state <> 0)
EXECUTE FUNCTION watchbill.jumped();
