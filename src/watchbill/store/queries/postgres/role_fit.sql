-- Say whether a role could have a region's rows alone: it is there, policies bind it, it is and can become nobody who owns
-- the tables; and whether who asks owns them. The owner's own rights come first: whoever lacks them learns nothing else.
SELECT
    owner.rolname AS owner,
    pg_has_role(owner.oid, 'USAGE') AS may,
    wanted.oid IS NOT NULL AS there,
    coalesce(wanted.rolsuper OR wanted.rolbypassrls, false) AS free,
    coalesce(pg_has_role(wanted.oid, owner.oid, 'MEMBER'), false) AS owns
FROM pg_catalog.pg_class AS meta
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = meta.relnamespace
JOIN pg_catalog.pg_roles AS owner ON owner.oid = meta.relowner
LEFT JOIN pg_catalog.pg_roles AS wanted ON wanted.rolname = :role::text
WHERE namespace.nspname = :schema::text
    AND meta.relname = 'meta'
