-- Read the incidents of all namespaces that are not resolved.
SELECT id, namespace, cause, state, members, body, opened_at, resolved_at
FROM incident
WHERE state = 0
ORDER BY namespace, cause
