-- Look at the server before anything is made: its version, whether it can be written, and whether a store is there.
-- Asked of the catalog's tables: what to_regclass says may be remembered from before another process made it.
SELECT
    current_setting('server_version_num')::integer AS version,
    pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only,
    namespace.oid IS NOT NULL AS there,
    EXISTS (
        SELECT 1
        FROM pg_catalog.pg_class
        WHERE relnamespace = namespace.oid
            AND relname = 'meta'
    ) AS filled,
    coalesce(has_schema_privilege(namespace.oid, 'usage'), true) AS usable,
    current_user AS user_name
FROM (SELECT 1) AS once
LEFT JOIN pg_catalog.pg_namespace AS namespace ON namespace.nspname = :schema
