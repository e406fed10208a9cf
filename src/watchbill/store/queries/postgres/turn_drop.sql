-- Delete the rows of cancelled calls of which no attempt can have taken effect; not those that run or are final: then their
-- outcomes are taken in; nor those that are judged first. So a row that is gone says that nothing is to be undone.
DELETE FROM watchbill.attempt
WHERE id = ANY (ARRAY(SELECT id FROM dropping WHERE state NOT IN (1, 4, 5) AND NOT judged))
RETURNING id
