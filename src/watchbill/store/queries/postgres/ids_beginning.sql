-- Read the ids that begin so, in order; from the index alone, whatever the collation of the database is.
SELECT id
FROM watchbill.run
WHERE namespace = :namespace
    AND starts_with(id, :beginning)
ORDER BY id
LIMIT :limit::bigint
