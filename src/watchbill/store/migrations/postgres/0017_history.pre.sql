-- What was decided of late is found by its time, whichever run it is about.
CREATE INDEX decision_at ON watchbill.decision (at, id);
