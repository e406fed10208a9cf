-- Count the running rows of a turn that finish was quicker than: their calls are done under the same fence.
SELECT count(*)
FROM json_each(:rows) AS visible
WHERE EXISTS (
    SELECT 1
    FROM attempt
    WHERE run = json_extract(visible.value, '$[0]')
        AND call = json_extract(visible.value, '$[1]')
        AND fence = json_extract(visible.value, '$[2]')
        AND part = json_extract(visible.value, '$[3]')
        AND state = 4
)
