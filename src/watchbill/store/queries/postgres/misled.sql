-- Name our tables of which the planner believes that they have far fewer rows than they have, if we may look at them anew.
-- It reckons with as many rows to a page as there were at the last look: after a look at an empty table, none.
SELECT format('%I.%I', pg_namespace.nspname, pg_class.relname)
FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_class.relnamespace
WHERE pg_namespace.nspname = :schema::text
    AND pg_class.relkind = 'r'
    AND pg_class.relpages > 0
    AND pg_class.reltuples >= 0
    AND pg_has_role(pg_class.relowner, 'USAGE')
    AND pg_relation_size(pg_class.oid) < :largest::bigint
    AND pg_stat_get_live_tuples(pg_class.oid) > :least::bigint + :times::bigint * pg_class.reltuples / pg_class.relpages
        * (pg_relation_size(pg_class.oid) / current_setting('block_size')::bigint)
