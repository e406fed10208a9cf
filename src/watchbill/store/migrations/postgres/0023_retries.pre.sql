-- Those that wait and have failed before: how many may start is a matter of the dependency that they use.
CREATE INDEX attempt_retry ON watchbill.attempt (queue, (alone OR losses >= 2), rank, id)
WHERE state = 0 AND NOT held AND failures > 0;
