"""Code from before regions: it goes on beside ours in a store that ours has upgraded, until a region gets a role."""

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.servers import PostgresServer
from tests.store.postgres import address_of
from tests.store.stage import Stage, a_stage
from watchbill.model.incident import NewIncident
from watchbill.store.postgres.connections import HOT, connect
from watchbill.store.postgres.regions import give_regions
from watchbill.store.postgres.statements import in_schema, statements
from watchbill.store.postgres.store import PostgresStore

CAUSE = "dependency 'bank' is down"

# As that code opens incidents, by all three of its texts.
OPENED_BEFORE = """
INSERT INTO watchbill.incident AS known (id, namespace, cause, members, body, people, opened_at)
VALUES ($1, 'default', $2, 1, '{}', '', 0)
ON CONFLICT (namespace, cause) WHERE state = 0 DO UPDATE SET members = known.members + excluded.members
RETURNING id
"""
# And as it finds who waits behind a gate.
WAITING_BEFORE = """
SELECT gate FROM watchbill.attempt AS waiting
WHERE (waiting.queue + 0) = 1 AND waiting.gate > '' AND waiting.state = 0 AND NOT waiting.held
    AND waiting.gate IS NOT NULL
ORDER BY waiting.gate LIMIT 1
"""
INDEXES_BEFORE = ("attempt_limited", "incident_open")


def an_incident(id: int, *, everywhere: bool = False) -> NewIncident:
    return NewIncident(id, "default", CAUSE, 1, b"{}", everywhere=everywhere)


@pytest.fixture
async def stage(postgres: PostgresServer) -> AsyncIterator[Stage]:
    # A store of its own, which no region has a role in, and one may get it.
    schema = f"before_{uuid.uuid4().hex[:8]}"
    async with a_stage(f"{postgres.url()}&schema={schema}") as stage:
        yield stage
        await stage.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
async def store(stage: Stage) -> PostgresStore:
    return await stage.store()


@pytest.mark.parametrize("everywhere", [False, True])
async def test_an_incident_of_one_is_that_of_the_other(stage: Stage, store: PostgresStore, everywhere: bool) -> None:
    assert list(map(tuple, await stage.sql(OPENED_BEFORE, 1, CAUSE))) == [(1,)]
    assert await store.supervisor.open_incidents([an_incident(2, everywhere=everywhere)]) == [False]
    [known] = await store.supervisor.incidents()
    await store.supervisor.resolve_incidents([known.id])
    assert await store.supervisor.open_incidents([an_incident(3, everywhere=everywhere)]) == [True]
    assert list(map(tuple, await stage.sql(OPENED_BEFORE, 4, CAUSE))) == [(3,)]
    # What the last failure was is not always known.
    assert await store.supervisor.open_incidents([an_incident(5, everywhere=not everywhere)]) == [False]


async def test_who_waits_behind_a_gate_is_found_by_the_index_that_was(stage: Stage) -> None:
    connection = await connect(address_of(stage.url), HOT)
    try:
        plan = await connection.fetch(f"EXPLAIN {in_schema(WAITING_BEFORE, stage.schema)}")
    finally:
        await connection.close()
    assert any("Index Scan using attempt_limited" in str(line) for (line,) in plan)


async def test_who_has_been_admitted_to_the_tables_that_were_opens_incidents(stage: Stage) -> None:
    role = f"{stage.schema}_guest"
    await stage.sql(f"CREATE ROLE {role}")
    try:
        await stage.sql(f"GRANT USAGE ON SCHEMA {stage.schema} TO {role}")
        await stage.sql(f"GRANT ALL ON watchbill.incident TO {role}")
        pin = await stage.pin(f"SET LOCAL ROLE {role}")
        found = await pin._connection.fetch(in_schema(OPENED_BEFORE, stage.schema), 1, CAUSE)
        assert list(map(tuple, found)) == [(1,)]
        await pin.release()
    finally:
        await stage.sql(f"DROP OWNED BY {role}")
        await stage.sql(f"DROP ROLE {role}")


async def test_who_opens_a_cause_at_the_same_moment_adds_to_it(stage: Stage, store: PostgresStore) -> None:
    # Ours has looked for the cause in its region, found nothing, and meets the other one in the index of all regions.
    other = await stage.pin(
        "INSERT INTO watchbill.incident (id, namespace, region, cause, members, body, people, opened_at)"
        " VALUES (1, 'default', 'not here yet', $1, 1, '{}', '', 0)",
        CAUSE,
    )
    door = stage.begin(store.supervisor.open_incidents([an_incident(2)]))
    await stage.waits(door)
    await other._connection.fetch(in_schema("UPDATE watchbill.incident SET region = ''", stage.schema))
    await other.commit()
    assert await stage.ended(door) == [False]
    assert [row.id for row in await store.supervisor.incidents()] == [1]


async def test_the_first_role_ends_that(stage: Stage, store: PostgresStore) -> None:
    named = "SELECT indexname FROM pg_indexes WHERE schemaname = $1 AND indexname = ANY ($2) ORDER BY indexname"

    async def kept() -> list[Any]:
        return [name for (name,) in await stage.sql(named, stage.schema, list(INDEXES_BEFORE))]

    assert await kept() == list(INDEXES_BEFORE)
    quoting = NewIncident(2, "default", "dependency 'post' is down", 1, b"{}")
    assert await store.supervisor.open_incidents([an_incident(1, everywhere=True), quoting]) == [True, True]
    role = f"{stage.schema}_eu"
    await stage.sql(f"CREATE ROLE {role}")
    try:
        await give_regions(address_of(stage.url), [("eu", role)])
        assert await kept() == []
        regions = "SELECT id, region FROM watchbill.incident ORDER BY id"
        assert list(map(tuple, await stage.sql(regions))) == [(1, "*"), (2, "")], "what quotes stays the owner's"
        assert await store.supervisor.open_incidents([an_incident(3, everywhere=True)]) == [False]
        # Each region has a cause of its own open, whoever has it open, too.
        pin = await stage.pin(f"SET LOCAL ROLE {role}")
        statement = statements(stage.schema)["open_incident"]
        values: dict[str, object] = {
            "ids": [4], "namespaces": ["default"], "causes": [quoting.cause], "members": [1], "bodies": [b"{}"],
            "peoples": [""], "everywheres": [False], "told_incidents": [], "told_routes": [], "now": None,
        }  # fmt: skip
        opened = await pin._connection.fetch(statement.text, *[values[name] for name in statement.names])
        assert list(map(tuple, opened)) == [(4,)]
        await pin.commit()
        await give_regions(address_of(stage.url), [("eu", role)])
        assert await kept() == [], "again changes nothing"
    finally:
        await stage.sql(f"DROP OWNED BY {role}")
        await stage.sql(f"DROP ROLE {role}")
