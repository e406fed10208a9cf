-- Say whether any namespace has a quota: if none has, runs are inserted without a look at each one's namespace.
SELECT EXISTS (SELECT 1 FROM quota)
