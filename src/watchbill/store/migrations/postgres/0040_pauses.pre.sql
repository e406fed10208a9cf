-- By which orders a run is paused: 1 its own, 2 that is for all runs below it, too, 4 the run that started it is paused
-- so. Code before this one writes only `paused`, which stays true while any of them is there.
ALTER TABLE watchbill.run ADD COLUMN pauses smallint NOT NULL DEFAULT 0;

-- All children of a run are told of its pause by one statement.
CREATE INDEX run_children ON watchbill.run (parent, num) WHERE parent IS NOT NULL;
