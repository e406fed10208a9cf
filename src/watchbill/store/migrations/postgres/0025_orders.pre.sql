-- What somebody wants for all members of an incident has a number that whoever wants it has chosen: who repeats it because
-- an answer was lost is told that it is done, also when all of it has been carried out since.
ALTER TABLE watchbill.incident ADD COLUMN order_no bigint;
