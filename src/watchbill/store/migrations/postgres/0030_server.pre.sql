-- Which server the store is on: the cluster's identifier and its timeline, which changes when a standby is promoted or
-- a backup is restored. The new server may have lost the last commits of the old one. Numbers that were issued in them
-- must not be issued again: every sequence of the store jumps ahead, and so do the fences of leases.
-- Runs as the owner of the tables: a region's role may not write `meta`.
CREATE FUNCTION watchbill.recognise() RETURNS text LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS
$$
DECLARE
    here text := '';
    known text;
    counter record;
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN '';
    END IF;
    BEGIN
        -- The control file says which timeline it is only after the next checkpoint; this does so at once.
        here := left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
        here := (SELECT system_identifier FROM pg_control_system()) || '/' || here;
    EXCEPTION WHEN OTHERS THEN
        NULL; -- a server that does not say which one it is: turns refuse holes all the same
    END;
    IF here = '' THEN
        RETURN '';
    END IF;
    SELECT convert_from(value, 'UTF8') INTO known FROM watchbill.meta WHERE key = 'server';
    IF known IS NULL THEN
        INSERT INTO watchbill.meta (key, value) VALUES ('server', convert_to(here, 'UTF8')) ON CONFLICT DO NOTHING;
        RETURN here;
    END IF;
    IF known = here THEN
        RETURN here;
    END IF;
    UPDATE watchbill.meta
    SET value = convert_to(here, 'UTF8')
    WHERE key = 'server' AND value <> convert_to(here, 'UTF8');
    IF FOUND THEN
        FOR counter IN
            SELECT class.oid, CASE WHEN sequence.seqtypid = 'bigint'::regtype THEN 1000000 ELSE 1000 END AS jump
            FROM pg_class AS class
            JOIN pg_sequence AS sequence ON sequence.seqrelid = class.oid
            WHERE class.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'watchbill.meta'::regclass)
        LOOP
            PERFORM setval(counter.oid, coalesce(pg_sequence_last_value(counter.oid), 0) + counter.jump);
        END LOOP;
        INSERT INTO watchbill.meta (key, value)
        VALUES ('fence_floor', convert_to((nextval('watchbill.term') << 20)::text, 'UTF8'))
        ON CONFLICT (key) DO UPDATE SET value = excluded.value;
    END IF;
    RETURN here;
END
$$;

-- Draw a term above one that was seen: a store that has lost the newest terms must not issue them again.
CREATE FUNCTION watchbill.term_above(seen bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS
$$
DECLARE
    drawn bigint := nextval('watchbill.term');
BEGIN
    WHILE drawn <= seen LOOP
        drawn := nextval('watchbill.term');
    END LOOP;
    RETURN drawn;
END
$$;
