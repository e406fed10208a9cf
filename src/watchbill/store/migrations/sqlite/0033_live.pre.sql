-- Runs that a scheduler holds in memory. For a list of more than two constants SQLite would make a table in memory, at
-- every insert and update of a run.
DROP INDEX run_live;
CREATE INDEX run_live ON run (shard, num) WHERE status < 10 AND status <> 2;
