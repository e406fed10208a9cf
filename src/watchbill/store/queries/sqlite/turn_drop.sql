-- Delete the row of a cancelled call, unless it runs or is final: then its outcome is taken in; or is judged first: an
-- attempt of it has ended and nobody has said what that means, or may have taken effect.
DELETE FROM attempt
WHERE id = ?1
    AND state NOT IN (1, 2, 4, 5)
    AND NOT (state = 0 AND kind = 2)
    AND NOT (state = 3 AND why IN ('settle', 'doubt'))
