-- Let rows be taken again by those who had them: whoever else could take them may be gone.
UPDATE attempt
SET avoid = NULL
WHERE state = 0
    AND avoid > 0
RETURNING id
