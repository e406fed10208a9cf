-- Look at the server before anything is made: its version, its rights, and whether a store is there.
SELECT
    current_setting('server_version_num')::integer AS version,
    pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only,
    to_regnamespace(quote_ident(:schema)) IS NOT NULL AS there,
    to_regclass(quote_ident(:schema) || '.meta') IS NOT NULL AS filled,
    coalesce(has_schema_privilege(to_regnamespace(quote_ident(:schema)), 'usage'), true) AS usable,
    current_user AS user_name,
    current_database() AS database_name
