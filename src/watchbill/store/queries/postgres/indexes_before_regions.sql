-- Give what must be said so that no index is left that only code from before regions needs; saying it again changes nothing.
-- They are of each cause one incident in all regions, and (queue + 0); known by their columns, too, not by their names alone.
SELECT format('DROP INDEX %I.%I', pg_namespace.nspname, pg_class.relname)
FROM (VALUES ('incident_open', 2, 'cause'), ('attempt_limited', 1, 'queue + 0')) AS old (name, place, key)
JOIN pg_catalog.pg_class ON pg_class.relname = old.name
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_class.relnamespace
WHERE pg_namespace.nspname = :schema::text
    AND btrim(pg_get_indexdef(pg_class.oid, old.place, true), '()') = old.key
ORDER BY old.name
