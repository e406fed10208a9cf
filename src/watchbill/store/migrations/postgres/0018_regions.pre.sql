-- Regions whose processes have a role of the database of their own, and see no rows of other regions. Which role sees
-- what is said when a region gets its role (region_texts.sql); here is what that needs. Without such a role nothing
-- changes: policies do not bind the owner of the tables.

CREATE TABLE watchbill.region_role (
    role text PRIMARY KEY,
    region text NOT NULL
);

-- All policies ask which shards a region has.
CREATE INDEX shard_region ON watchbill.shard (region);

-- The region of whoever asks: nothing of one whom no policy binds.
-- That one need not be allowed to read the new table: in this language it is asked for when it is read.
CREATE FUNCTION watchbill.own_region() RETURNS text LANGUAGE plpgsql STABLE AS
$$
BEGIN
    IF NOT row_security_active('watchbill.run') THEN
        RETURN '';
    END IF;
    RETURN (
        SELECT DISTINCT region_role.region
        FROM watchbill.region_role
        JOIN pg_catalog.pg_roles ON pg_roles.rolname = region_role.role
        WHERE pg_has_role(pg_roles.oid, 'USAGE')
    );
END
$$;

-- region: whose it is. An incident may quote errors, so only its region's role reads it; '*' are those that quote nothing
-- and are everybody's; those without one were written by the owner of the tables, and are the owner's alone.
ALTER TABLE watchbill.incident ADD COLUMN region text NOT NULL DEFAULT '';
ALTER TABLE watchbill.incident ALTER COLUMN region SET DEFAULT watchbill.own_region();

-- incident_open, on (namespace, cause), stays for the code before this one, which names its columns: until a region gets a
-- role (indexes_before_regions.sql), nothing else than '' is written here.
CREATE UNIQUE INDEX incident_open_in_region ON watchbill.incident (namespace, region, cause) WHERE state = 0;

-- What roles of all regions may know of all rows, because they coordinate by it: where they live, and who runs or waits
-- behind which gate. A view reads with the rights of its owner, whom no policy binds.
CREATE VIEW watchbill.run_home AS
SELECT num, shard FROM watchbill.run;

CREATE VIEW watchbill.incident_home AS
SELECT id, region FROM watchbill.incident;

CREATE VIEW watchbill.attempt_place AS
SELECT id, fence, state, held, queue, gate FROM watchbill.attempt;

-- Who waits behind a gate is still found by one index alone; but a condition on (queue + 0) is not asked of an index for
-- those whom policies bind: an addition may overflow, and its error would tell of rows that they must not see. A wider
-- number cannot. attempt_limited, on (queue + 0), stays as long as incident_open does.
CREATE INDEX attempt_gated ON watchbill.attempt ((queue::bigint), gate, (alone OR losses >= 2), rank, id)
WHERE state = 0 AND NOT held AND gate IS NOT NULL;
