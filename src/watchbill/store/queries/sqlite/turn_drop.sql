-- Delete the row of a cancelled call, unless it runs or is final: then its outcome is taken in; or may still act: then it is
-- asked about first.
DELETE FROM attempt
WHERE id = ?1
    AND state NOT IN (1, 4, 5)
    AND why IS NOT 'settle'
