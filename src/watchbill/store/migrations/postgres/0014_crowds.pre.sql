-- Who waits behind a gate is found by the index of gates alone. Where most of those who wait do so behind one gate, the
-- server takes `queue = x AND gate = y` for as good a question to attempt_ready, and reads the crowd for each other
-- gate. (queue + 0: only this index can answer.)
DROP INDEX watchbill.attempt_limited;
CREATE INDEX attempt_limited ON watchbill.attempt ((queue + 0), gate, (alone OR losses >= 2), rank, id)
WHERE state = 0 AND NOT held AND gate IS NOT NULL;
