-- Runs know their slots, and schedules can be created at run time.

-- slot: the instant that a run of a schedule stands for; its retries and forks have the same one.
-- parent_id: the id of the run that started this one as its child; retries and forks of a child have the same one.
-- copied: how many entries at the beginning of its journal were copied from another run.
ALTER TABLE watchbill.run ADD COLUMN slot bigint;
ALTER TABLE watchbill.run ADD COLUMN parent_id text;
ALTER TABLE watchbill.run ADD COLUMN copied integer NOT NULL DEFAULT 0;

UPDATE watchbill.run
SET parent_id = parent.id
FROM watchbill.run AS parent
WHERE parent.num = run.parent AND run.status < 10;

-- workflow: the workflow that is started; null if it has the schedule's name, as that of a schedule in code does.
-- created: true if the schedule was created at run time, and so is in no code.
ALTER TABLE watchbill.schedule ADD COLUMN workflow text;
ALTER TABLE watchbill.schedule ADD COLUMN created boolean NOT NULL DEFAULT false;
