-- Write the quota of attempts of a namespace: a gate that stays paused, so that whoever leases finds it.
INSERT INTO gate (namespace, name, at_once, tokens, tokens_at, said, paused, paused_by, paused_why, paused_at)
VALUES (:namespace, 'quota.attempts', :most, 0, :now, 0, 1, :by, :reason, :now)
ON CONFLICT (namespace, name) DO UPDATE
SET at_once = excluded.at_once, paused_by = excluded.paused_by, paused_why = excluded.paused_why,
    paused_at = excluded.paused_at
