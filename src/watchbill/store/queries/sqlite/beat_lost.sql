-- Find which of the (id, fence) that an agent believes to hold are no longer running under that fence.
SELECT json_extract(believed.value, '$[0]')
FROM json_each(:held) AS believed
WHERE NOT EXISTS (
    SELECT 1
    FROM attempt
    WHERE id = json_extract(believed.value, '$[0]')
        AND fence = json_extract(believed.value, '$[1]')
        AND state = 1
)
