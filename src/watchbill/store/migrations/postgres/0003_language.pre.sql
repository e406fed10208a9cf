-- What the whole language of workflows needs: messages before the beginning, trees of runs, questions to people.

-- Something was journalled for a run before it began.
ALTER TABLE watchbill.run ADD COLUMN early boolean NOT NULL DEFAULT false;

-- The tree under a root, for those that are in one.
CREATE INDEX run_tree ON watchbill.run (root, num) WHERE parent IS NOT NULL;

-- What waits for a person.
CREATE INDEX attempt_asked ON watchbill.attempt (id) WHERE kind = 1;
