-- Write the quota of a namespace.
INSERT INTO quota (namespace, runs, by, reason, at)
VALUES (:namespace, :most, :by, :reason, :now)
ON CONFLICT (namespace) DO UPDATE
SET runs = excluded.runs, by = excluded.by, reason = excluded.reason, at = excluded.at
