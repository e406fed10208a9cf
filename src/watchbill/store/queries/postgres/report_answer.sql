-- Give what was accepted.
SELECT id, fence, cancel, gate IS NOT NULL
FROM accepted
