-- Find where the last part of a run begins (kind 9), and whether its deadline has passed in an earlier one (kind 10).
CREATE INDEX journal_part ON watchbill.journal (run, kind, seq) WHERE kind IN (9, 10);
