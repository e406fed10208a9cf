-- Delete the row of a cancelled call if none of its attempts can have taken effect; not what runs or is final: then its
-- outcome is taken in; nor what is judged first: an attempt of it has ended and nobody has said what that means, or may have
-- taken effect, or may act. So a row that is gone says that nothing is to be undone.
DELETE FROM attempt
WHERE id = ?1
    AND state IN (0, 3)
    AND NOT unsure
    AND coalesce(acts_until, 0) <= ?2
    AND NOT (state = 0 AND kind = 2)
    AND NOT (state = 3 AND why IN ('settle', 'doubt'))
