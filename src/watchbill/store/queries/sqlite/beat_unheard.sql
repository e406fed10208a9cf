-- Find what earlier requests of an agent have leased and it does not hold: it never heard of it.
SELECT id, fence
FROM attempt
WHERE agent = :agent
    AND state = 1
    AND lease_no < :lease_no
    AND (id, fence) NOT IN (
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]')
        FROM json_each(:held)
    )
ORDER BY id
