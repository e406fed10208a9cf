-- Name the gates after a place, in order.
SELECT namespace, name
FROM gate
WHERE (namespace, name) > (:after_namespace, :after_name)
ORDER BY namespace, name
LIMIT :limit
