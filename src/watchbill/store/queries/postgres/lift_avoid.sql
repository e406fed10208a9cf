-- Let rows be taken again by those who had them: whoever else could take them may be gone.
UPDATE watchbill.attempt
SET avoid = NULL
WHERE id = ANY (ARRAY(
    SELECT id
    FROM watchbill.attempt
    WHERE state = 0
        AND avoid IS NOT NULL
    ORDER BY id
    FOR UPDATE SKIP LOCKED
))
RETURNING id
