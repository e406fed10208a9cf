-- Who is asked something is told of it outside, as of an incident: by one of its own for each question, which has the number
-- of that, and which no list shows. What was asked before this is nobody's news.

-- asks: it is about a question.
ALTER TABLE incident ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;

UPDATE attempt SET incident = id WHERE kind = 1;

-- Questions, those that nobody was told of first.
CREATE INDEX attempt_untold ON attempt (incident, id) WHERE kind = 1;
