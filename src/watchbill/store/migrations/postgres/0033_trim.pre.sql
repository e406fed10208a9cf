-- Ends of parts by time: retention deletes what is before the last one that has expired.
CREATE INDEX journal_ended_part ON watchbill.journal (at, run, seq) WHERE kind = 9;
