"""A witness inside PostgreSQL: triggers of the tests' own write down who takes a shard from whom, and who is lost."""

import time

from tests.servers import PostgresServer

WITNESS = """
    CREATE TABLE watchbill.witness (at bigint, what text, who bigint, until bigint, by bigint, pid integer);
    CREATE FUNCTION watchbill.now() RETURNS bigint LANGUAGE sql AS $$ SELECT watchbill.at(NULL) $$;
    CREATE FUNCTION watchbill.see_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO watchbill.witness VALUES (watchbill.now(), 'took', old.owner, old.until, new.owner, NULL);
        RETURN NULL;
    END $$;
    CREATE TRIGGER see AFTER UPDATE ON watchbill.lease FOR EACH ROW
        WHEN (old.owner IS NOT NULL AND new.owner IS NOT NULL AND old.owner <> new.owner)
        EXECUTE FUNCTION watchbill.see_lease();
    CREATE FUNCTION watchbill.see_member() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO watchbill.witness VALUES
            (watchbill.now(), 'came', new.id, NULL, NULL, (convert_from(new.info, 'utf8')::json ->> 'pid')::integer);
        RETURN NULL;
    END $$;
    CREATE TRIGGER see AFTER INSERT ON watchbill.scheduler FOR EACH ROW EXECUTE FUNCTION watchbill.see_member();
    CREATE TRIGGER see AFTER INSERT ON watchbill.agent FOR EACH ROW EXECUTE FUNCTION watchbill.see_member();
    CREATE FUNCTION watchbill.see_lost() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO watchbill.witness VALUES (watchbill.now(), 'lost', old.id, old.until, NULL, NULL);
        RETURN NULL;
    END $$;
    CREATE TRIGGER see_lost AFTER UPDATE ON watchbill.agent FOR EACH ROW
        WHEN (old.state = 1 AND new.state = 2) EXECUTE FUNCTION watchbill.see_lost();
"""


def until(server: PostgresServer, condition: str, seconds: float = 30.0) -> None:
    """Wait until a query says so."""
    end = time.time() + seconds
    while server.sql(condition) != "t":
        if time.time() > end:
            left = server.sql("SELECT id, status, held, losses FROM watchbill.run WHERE status < 10")
            rows = server.sql("SELECT run_id, call, state, agent, losses, failures, why FROM watchbill.attempt")
            raise AssertionError(f"not within {seconds:g} s: {condition}\n{left}\n{rows}")
        time.sleep(0.1)
