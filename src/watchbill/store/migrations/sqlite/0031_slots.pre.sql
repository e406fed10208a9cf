-- Runs know their slots, and schedules can be created at run time.

-- slot: the instant that a run of a schedule stands for; its retries and forks have the same one.
-- parent_id: the id of the run that started this one as its child; retries and forks of a child have the same one.
-- copied: how many entries at the beginning of its journal were copied from another run.
ALTER TABLE run ADD COLUMN slot INTEGER;
ALTER TABLE run ADD COLUMN parent_id TEXT;
ALTER TABLE run ADD COLUMN copied INTEGER NOT NULL DEFAULT 0;

UPDATE run
SET parent_id = (SELECT parent.id FROM run AS parent WHERE parent.num = run.parent)
WHERE parent IS NOT NULL AND status < 10;

-- workflow: the workflow that is started; null if it has the schedule's name, as that of a schedule in code does.
-- created: 1 if the schedule was created at run time, and so is in no code.
ALTER TABLE schedule ADD COLUMN workflow TEXT;
ALTER TABLE schedule ADD COLUMN created INTEGER NOT NULL DEFAULT 0;
