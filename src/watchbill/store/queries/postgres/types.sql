-- Describe arrays of composite types, with those types before them, as the driver wants them. No rows for any other type.
SELECT
    described.oid,
    element.typnamespace::regnamespace::name AS ns,
    described.name,
    described.kind,
    NULL AS basetype,
    described.element AS elemtype,
    whole.typdelim AS elemdelim,
    NULL AS range_subtype,
    described.attrtypoids,
    described.attrnames,
    element.typname::text AS elemtype_name
FROM pg_catalog.pg_type AS whole
JOIN pg_catalog.pg_type AS element ON element.oid = whole.typelem AND element.typarray = whole.oid
CROSS JOIN LATERAL (
    SELECT array_agg(atttypid::bigint ORDER BY attnum) AS types, array_agg(attname::text ORDER BY attnum) AS names
    FROM pg_catalog.pg_attribute
    WHERE attrelid = element.typrelid AND attnum > 0 AND NOT attisdropped
) AS columns
CROSS JOIN LATERAL (
    VALUES (element.oid, element.typname, 'c'::"char", NULL::oid, columns.types, columns.names),
        (whole.oid, whole.typname, 'b'::"char", element.oid, NULL, NULL)
) AS described (oid, name, kind, element, attrtypoids, attrnames)
WHERE whole.oid = ANY (:numbers::oid[]) AND element.typtype = 'c'
ORDER BY described.kind DESC
