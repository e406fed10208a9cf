-- Read which roles have a region; not those that are gone, or have been stripped of it by DROP OWNED.
SELECT known.role, known.region
FROM watchbill.region_role AS known
JOIN pg_catalog.pg_roles ON pg_roles.rolname = known.role
WHERE EXISTS (
    SELECT 1
    FROM pg_catalog.pg_policy
    JOIN pg_catalog.pg_class ON pg_class.oid = pg_policy.polrelid
    JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_class.relnamespace
    WHERE pg_namespace.nspname = :schema::text
        AND pg_class.relname = 'run'
        AND pg_roles.oid = ANY (pg_policy.polroles)
)
ORDER BY known.role
