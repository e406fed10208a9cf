-- Those that wait and have failed before: how many may start is a matter of the dependency that they use.
CREATE INDEX attempt_retry ON attempt (queue, (alone OR losses >= 2), rank) WHERE state = 0 AND held = 0 AND failures > 0;
