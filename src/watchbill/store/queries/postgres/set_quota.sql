-- Write the quota of a namespace.
INSERT INTO watchbill.quota (namespace, runs, by, reason, at)
VALUES (:namespace, :most::bigint, :by, :reason, (SELECT watchbill.at(:now::bigint)))
ON CONFLICT (namespace) DO UPDATE
SET runs = excluded.runs, by = excluded.by, reason = excluded.reason, at = excluded.at
RETURNING namespace
