-- Say which row is the last of the next ones after a place, and how many those are.
SELECT count(*), max(id)
FROM (
    SELECT id
    FROM attempt
    WHERE id > :after
    ORDER BY id
    LIMIT :limit
)
