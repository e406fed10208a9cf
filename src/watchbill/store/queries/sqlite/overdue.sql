-- Say for how long the row has waited that is due for a look longest; no more than the first of an index is read.
SELECT coalesce(:now - min(watch_at), 0)
FROM attempt
WHERE watch_at <= :now
