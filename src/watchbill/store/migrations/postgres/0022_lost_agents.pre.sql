-- That an agent was lost is told once, with the evidence, and how many attempts were taken from it.

-- missed_at: when that was told; an agent that has beaten since may be lost again. 0 of those who were never.
-- found: dead, silent, expired; '' of those who are well, or were lost before there was this column.
ALTER TABLE watchbill.agent
    ADD COLUMN missed_at bigint NOT NULL DEFAULT 0,
    ADD COLUMN found text NOT NULL DEFAULT '',
    ADD COLUMN moved integer NOT NULL DEFAULT 0;

-- Who was lost before nobody is told of now.
UPDATE watchbill.agent
SET missed_at = greatest(gone_at, until, 1)
WHERE state = 2;

-- Nobody else than those whom somebody is to be told of: mostly nobody. A beat changes none of these columns.
CREATE INDEX agent_untold ON watchbill.agent (id) WHERE state = 2 AND missed_at = 0;
