-- Delete the rows of cancelled calls that do not run.
DELETE FROM watchbill.attempt
WHERE id = ANY (ARRAY(SELECT id FROM dropping WHERE state <> 1))
