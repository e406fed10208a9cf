-- Say whether policies bind whoever asks, and of which regions that role is.
SELECT
    row_security_active('watchbill.run') AS bound,
    ARRAY(
        SELECT DISTINCT region_role.region
        FROM watchbill.region_role
        JOIN pg_catalog.pg_roles ON pg_roles.rolname = region_role.role
        WHERE pg_has_role(pg_roles.oid, 'USAGE')
    ) AS regions,
    current_user AS role
