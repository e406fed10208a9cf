-- That an agent was lost is told once, with the evidence, and how many attempts were taken from it.

-- When that was told; an agent that has beaten since may be lost again. 0 of those who were never.
ALTER TABLE agent ADD COLUMN missed_at INTEGER NOT NULL DEFAULT 0;
-- dead, silent, expired; '' of those who are well, or were lost before there was this column.
ALTER TABLE agent ADD COLUMN found TEXT NOT NULL DEFAULT '';
ALTER TABLE agent ADD COLUMN moved INTEGER NOT NULL DEFAULT 0;

-- Who was lost before nobody is told of now.
UPDATE agent
SET missed_at = max(gone_at, until, 1)
WHERE state = 2;

-- Nobody else than those whom somebody is to be told of: mostly nobody.
CREATE INDEX agent_untold ON agent (id) WHERE state = 2 AND missed_at = 0;
