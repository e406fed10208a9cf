-- A connection that is gone is evidence of a death.

-- witness: when it was last heard, it held its lock on the connection on which it listens.
ALTER TABLE watchbill.agent ADD COLUMN witness boolean NOT NULL DEFAULT false;

-- Which lock an agent's is: of all databases and schemas of a server, and of what programs lock by numbers of their own.
CREATE FUNCTION watchbill.witness_lock(agent bigint) RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT hashtextextended('watchbill.agent ' || agent || ' of ' || current_database(), 0) $$;
