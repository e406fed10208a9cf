-- What the whole language of workflows needs: messages before the beginning, trees of runs, questions to people.

-- Something was journalled for a run before it began.
ALTER TABLE run ADD COLUMN early INTEGER NOT NULL DEFAULT 0;

-- What a run that waits waits for, in words, beside time: its calls without rows are in no other place.
ALTER TABLE run ADD COLUMN waits TEXT;

-- The tree under a root, for those that are in one.
CREATE INDEX run_tree ON run (root, num) WHERE parent IS NOT NULL;

-- What waits for a person.
CREATE INDEX attempt_asked ON attempt (id) WHERE kind = 1;
