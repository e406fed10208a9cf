-- Who is asked something is told of it outside, as of an incident: by one of its own for each question, which has the number
-- of that, and which no list shows. What was asked before this is nobody's news.

-- asks: it is about a question.
ALTER TABLE watchbill.incident ADD COLUMN asks boolean NOT NULL DEFAULT false;

UPDATE watchbill.attempt SET incident = id WHERE kind = 1;

-- Questions that nobody was told of. (id + 0): an order that only this index has; IS TRUE: it is for nothing else.
CREATE INDEX attempt_untold ON watchbill.attempt ((id + 0)) WHERE (kind = 1) IS TRUE AND incident IS NULL;
