-- Give what was accepted.
SELECT id, fence, cancel
FROM accepted
