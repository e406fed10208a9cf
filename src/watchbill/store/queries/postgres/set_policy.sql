-- Write down what is changed of the policy of a step; its revision is above all others of the namespace.
INSERT INTO watchbill.policy (namespace, step, revision, by, reason, at, body)
SELECT
    :namespace, :step,
    (SELECT coalesce(max(other.revision), 0) + 1 FROM watchbill.policy AS other WHERE other.namespace = :namespace),
    :by, :reason, (SELECT watchbill.at(:now::bigint)), :body
ON CONFLICT (namespace, step) DO UPDATE
SET revision = excluded.revision, by = excluded.by, reason = excluded.reason, at = excluded.at, body = excluded.body
