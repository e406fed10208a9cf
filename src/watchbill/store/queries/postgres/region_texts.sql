-- Give what must be said so that a role has its region's rows and no others; saying it again changes nothing.
-- Every table has its line here. `own`: the condition of its own rows. `new`: of those it may write, if that is another
-- one: a row about a run or shard that is made by the same statement is written before anybody can see that; what is
-- changed must be the role's own afterwards, and about a run of its own where the row does not show that. All that is
-- looked up is looked up for one row at a time, never all of it: a plan is made once, perhaps when nothing was stored.
-- For the same reason no index answers `shard::bigint`: rows are found as the owner finds them, and then compared.
WITH names AS (
    SELECT
        format('ARRAY(SELECT id::bigint FROM watchbill.shard WHERE region = %L)', :region::text) AS shards,
        format('region = %L', :region::text) AS here,
        format('region IN (%L, ''*'')', :region::text) AS ours,
        :schema::text AS schema,
        quote_ident(:role::text) AS role,
        -- A name has 63 bytes at most: what is longer would be cut, and two be one.
        CASE WHEN octet_length(:role::text) <= 50 THEN :role::text ELSE md5(:role::text) END AS known_as
),
tables AS (
    SELECT known.place, known.name, known.seen, known.own, known.new
    FROM names
    CROSS JOIN LATERAL (
        VALUES
            -- What runs were given, did and became.
            (1, 'run', NULL, format('shard::bigint = ANY (%s)', shards), NULL),
            (2, 'attempt', NULL, format('shard::bigint = ANY (%s)', shards), 'where its run is'),
            (3, 'fact', NULL, format('shard::bigint = ANY (%s)', shards), 'where its run is'),
            (4, 'schedule', NULL, format('shard::bigint = ANY (%s)', shards), NULL),
            (5, 'journal', NULL, 'of run', 'of run'),
            (6, 'decision', NULL, 'of run', 'of run'),
            (7, 'blob', NULL, 'of run', 'of run'),
            (8, 'log', NULL, 'of run', 'of run'),
            (20, 'chunk', NULL, 'of run', 'of run'),
            (21, 'upload', NULL, format('shard::bigint = ANY (%s)', shards), 'where its run is'),
            (17, 'chain', NULL, 'of run', 'of run'),
            (18, 'failed_run', NULL, 'of run', 'of run'),
            (9, 'incident', NULL, ours, NULL),
            (
                10, 'alert', NULL, '(SELECT true FROM watchbill.incident WHERE incident.id = alert.incident)',
                format('coalesce((SELECT %s FROM watchbill.incident_home AS home WHERE home.id = alert.incident), true)', ours)
            ),
            (19, 'logbook', NULL, ours, NULL),
            -- Who is there, each for its region.
            (
                11, 'lease', NULL, format('shard::bigint = ANY (%s)', shards),
                format('coalesce((SELECT shard.%s FROM watchbill.shard WHERE shard.id = lease.shard), true)', here)
            ),
            (12, 'scheduler', NULL, here, NULL),
            (13, 'agent', NULL, here, NULL),
            (14, 'supervisor', NULL, here, NULL),
            -- Where things are: all may know it, and each writes its own.
            (15, 'shard', 'true', here, NULL),
            (16, 'queue', 'true', here, NULL)
    ) AS known (place, name, seen, own, new)
),
conditions AS (
    SELECT
        tables.place, tables.name, tables.seen,
        CASE tables.own
            WHEN 'of run' THEN format('(SELECT true FROM watchbill.run WHERE run.num = %I.run)', tables.name)
            ELSE tables.own
        END AS own,
        CASE tables.new
            WHEN 'of run' THEN format(
                'coalesce((SELECT home.shard::bigint = ANY (%s) FROM watchbill.run_home AS home WHERE home.num = %I.run), true)',
                names.shards, tables.name
            )
            -- It has a shard of its own, which says nothing of whose run it is about.
            WHEN 'where its run is' THEN format(
                '%s AND coalesce((SELECT home.shard = %I.shard FROM watchbill.run_home AS home WHERE home.num = %I.run), true)',
                tables.own, tables.name, tables.name
            )
            ELSE coalesce(tables.new, tables.own)
        END AS new,
        tables.new = 'where its run is' AS bound
    FROM tables
    CROSS JOIN names
)
SELECT string_agg(said.text, '; ' ORDER BY said.part, said.place, said.n)
FROM names
CROSS JOIN LATERAL (
    SELECT 1 AS part, 0 AS place, 0 AS n, format('GRANT USAGE ON SCHEMA %I TO %s', schema, role) AS text
    UNION ALL
    SELECT 1, 1, 0, format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %s', schema, role)
    UNION ALL
    SELECT 1, 2, 0, format('GRANT USAGE ON SEQUENCE watchbill.term TO %s', role)
    UNION ALL
    SELECT 1, 2, 1, format('GRANT USAGE, SELECT ON SEQUENCE watchbill.jump TO %s', role)
    UNION ALL
    -- Shared by all: limits, pauses and breakers (without what anything failed with), what steps take, what operators want.
    SELECT 1, 3, 0, format(
        'GRANT SELECT, INSERT, UPDATE, DELETE ON watchbill.gate, watchbill.stat, watchbill.policy, watchbill.orphan,'
        ' watchbill.quota,'
        ' watchbill.retention TO %s', role
    )
    UNION ALL
    SELECT 1, 4, 0, format(
        'GRANT SELECT ON watchbill.meta, watchbill.region_role, watchbill.run_home, watchbill.incident_home,'
        ' watchbill.attempt_place, watchbill.run_state TO %s', role
    )
    UNION ALL
    -- What people read is read with their own rights, where the server can do that; else the roles do not read it.
    SELECT 2, 0, n, text
    FROM (
        VALUES
            (0, 'ALTER VIEW watchbill.steps SET (security_invoker = true)'),
            (1, 'ALTER VIEW watchbill.workflows SET (security_invoker = true)'),
            (2, format('GRANT SELECT ON watchbill.steps, watchbill.workflows TO %s', role))
    ) AS views (n, text)
    WHERE current_setting('server_version_num')::integer >= 150000
    UNION ALL
    -- What a role was given under another name, or for another region, it has no more: a policy knows it by its number.
    SELECT 3, 0, 0, format('DROP POLICY %I ON %I.%I', pg_policy.polname, schema, pg_class.relname)
    FROM pg_catalog.pg_policy
    JOIN pg_catalog.pg_class ON pg_class.oid = pg_policy.polrelid
    JOIN pg_catalog.pg_namespace ON pg_namespace.oid = pg_class.relnamespace
    JOIN pg_catalog.pg_roles ON pg_policy.polroles = ARRAY[pg_roles.oid]
    WHERE pg_namespace.nspname = :schema::text
        AND pg_roles.rolname = :role::text
        AND pg_policy.polname ~ '^(read|insert|update|delete) as '
    UNION ALL
    SELECT 3, conditions.place, act.n, act.text
    FROM conditions
    CROSS JOIN LATERAL (
        VALUES
            (0, format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I.%I TO %s', schema, name, role)),
            (1, format('ALTER TABLE %I.%I ENABLE ROW LEVEL SECURITY', schema, name)),
            (2, format('DROP POLICY IF EXISTS %I ON %I.%I', 'read as ' || known_as, schema, name)),
            (3, format('DROP POLICY IF EXISTS %I ON %I.%I', 'insert as ' || known_as, schema, name)),
            (4, format('DROP POLICY IF EXISTS %I ON %I.%I', 'update as ' || known_as, schema, name)),
            (5, format('DROP POLICY IF EXISTS %I ON %I.%I', 'delete as ' || known_as, schema, name)),
            (
                6,
                format(
                    'CREATE POLICY %I ON %I.%I FOR SELECT TO %s USING (%s)',
                    'read as ' || known_as, schema, name, role, coalesce(seen, own)
                )
            ),
            (
                7,
                format(
                    'CREATE POLICY %I ON %I.%I FOR INSERT TO %s WITH CHECK (%s)',
                    'insert as ' || known_as, schema, name, role, new
                )
            ),
            (
                8,
                format(
                    'CREATE POLICY %I ON %I.%I FOR UPDATE TO %s USING (%s) WITH CHECK (%s)',
                    'update as ' || known_as, schema, name, role, own, CASE WHEN bound THEN new ELSE own END
                )
            ),
            (
                9,
                format(
                    'CREATE POLICY %I ON %I.%I FOR DELETE TO %s USING (%s)',
                    'delete as ' || known_as, schema, name, role, own
                )
            )
    ) AS act (n, text)
) AS said
