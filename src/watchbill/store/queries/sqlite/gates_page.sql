-- Name the gates after a place, in order, and say of which it may be that nobody uses them.
SELECT namespace, name, NOT paused AND state = 0 AND tokens_at < :unused_since
FROM gate
WHERE (namespace, name) > (:after_namespace, :after_name)
ORDER BY namespace, name
LIMIT :limit
