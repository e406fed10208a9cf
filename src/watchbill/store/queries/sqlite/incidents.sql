-- Read the incidents of a namespace, newest first.
SELECT id, namespace, cause, state, members, body, opened_at, resolved_at
FROM incident
WHERE namespace = :namespace
    AND (:resolved OR state = 0)
ORDER BY opened_at DESC, id DESC
LIMIT :limit
