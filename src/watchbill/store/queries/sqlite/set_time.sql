-- Raise the bound before a commit that would exceed it.
UPDATE meta
SET value = :time
WHERE key = 'time'
