-- Write down what is changed of the policy of a step; its revision is above all others of the namespace.
INSERT INTO policy (namespace, step, revision, by, reason, at, body)
VALUES (
    :namespace, :step,
    (SELECT coalesce(max(other.revision), 0) + 1 FROM policy AS other WHERE other.namespace = :namespace),
    :by, :reason, :now, :body
)
ON CONFLICT (namespace, step) DO UPDATE
SET revision = excluded.revision, by = excluded.by, reason = excluded.reason, at = excluded.at, body = excluded.body
