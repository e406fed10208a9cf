-- Read what people ordered last.
SELECT at, by, kind, name, act, detail, reason
FROM watchbill.logbook
WHERE namespace = :namespace
ORDER BY at DESC, id DESC
LIMIT :limit::bigint
