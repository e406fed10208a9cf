-- Lock the gates of dependencies, in the order of their names; whoever reads them after that sees all that others wrote.
SELECT name
FROM watchbill.gate
WHERE (namespace, name) IN (SELECT * FROM unnest(:namespaces::text[], :names::text[]))
ORDER BY namespace COLLATE "C", name COLLATE "C"
FOR UPDATE
