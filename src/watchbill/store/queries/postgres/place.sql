-- Name this database among all, and say whether the store's schema is there; asks for nothing that may be missing.
SELECT
    (SELECT system_identifier::text FROM pg_catalog.pg_control_system()) || '/' || oid::text AS place,
    EXISTS (
        SELECT 1
        FROM pg_catalog.pg_namespace AS namespace
        CROSS JOIN pg_catalog.pg_class AS meta
        WHERE namespace.nspname = :schema::text
            AND meta.relnamespace = namespace.oid
            AND meta.relname = 'meta'
            AND has_schema_privilege(namespace.oid, 'usage')
    ) AS there
FROM pg_catalog.pg_database
WHERE datname = current_database()
