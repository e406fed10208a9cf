-- Delete the rows of cancelled calls, unless they run or are final: then their outcomes are taken in; or are judged first.
DELETE FROM watchbill.attempt
WHERE id = ANY (ARRAY(SELECT id FROM dropping WHERE state NOT IN (1, 4, 5) AND NOT judged))
