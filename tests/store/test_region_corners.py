"""Roles of regions that have companions, had other names, or come after somebody who said too much."""

import uuid
from collections.abc import AsyncIterator

import pytest

from tests.servers import PostgresServer
from tests.store.postgres import address_of, by_hand
from watchbill.env import SystemEnv
from watchbill.model.breaker import Ended
from watchbill.model.incident import NewIncident
from watchbill.store.open import open_store
from watchbill.store.postgres.regions import give_regions
from watchbill.supervisor.dependencies import Dependencies


class Port:
    """A store of its own, and roles that only it has."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.schema = f"port_{uuid.uuid4().hex[:8]}"
        self.owner = server.url(schema=self.schema)
        self.roles: list[str] = []

    def role(self, name: str) -> str:
        role = f"{self.schema}_{name}"
        self._server.sql(f"CREATE ROLE {role} LOGIN")
        self.roles.append(role)
        return role

    def say(self, sql: str) -> str:
        return self._server.sql(sql)

    async def give(self, *wanted: tuple[str, str]) -> None:
        await give_regions(address_of(self.owner), wanted)

    def of(self, role: str) -> str:
        return self._server.url(user=role, schema=self.schema)


@pytest.fixture
async def port(postgres: PostgresServer) -> AsyncIterator[Port]:
    port = Port(postgres)
    await (await open_store(port.owner, SystemEnv())).close()
    yield port
    port.say(f"DROP SCHEMA {port.schema} CASCADE")
    for role in port.roles:
        port.say(f"DROP OWNED BY {role}")
        port.say(f"DROP ROLE {role}")


async def test_a_member_of_two_roles_of_one_region_opens_incidents(port: Port) -> None:
    one, both = port.role("one"), port.role("both")
    await port.give(("eu", one), ("eu", both))
    port.say(f"GRANT {one} TO {both}")
    store = await open_store(port.of(both), SystemEnv())
    try:
        assert store.region == "eu"
        assert await store.supervisor.open_incidents([NewIncident(1, "default", "x", 1, b"{}")]) == [True]
    finally:
        await store.close()
    assert [tuple(row) for row in await by_hand(port.owner, "SELECT region FROM watchbill.incident")] == [("eu",)]


async def test_a_role_that_was_renamed_has_one_region_all_the_same(port: Port) -> None:
    role = port.role("eu")
    await port.give(("eu", role))
    renamed = f"{port.schema}_us"
    port.say(f"ALTER ROLE {role} RENAME TO {renamed}")
    port.roles[:] = [renamed]
    await port.give(("us", renamed))
    store = await open_store(port.owner, SystemEnv())
    for num, region in ((1, "eu"), (2, "us")):
        [shard, *_] = await store.scheduler.shards("default", region)
        await by_hand(
            port.owner,
            "INSERT INTO watchbill.run (num, shard, namespace, id, workflow, version, root, input, created_at)"
            " VALUES ($1, $2, 'default', $3, 'x', 1, $1, '', 0)",
            num,
            shard,
            region,
        )
    await store.close()
    assert [id for (id,) in await by_hand(port.of(renamed), "SELECT id FROM watchbill.run")] == ["us"]


async def test_what_the_owner_said_of_a_dependency_goes_with_the_next_failure(port: Port) -> None:
    owner = await open_store(port.owner, SystemEnv())
    queue = await owner.scheduler.queue("default", "eu", [], "bank")
    await owner.supervisor.hear([Ended(queue, 1, 1, False, "ConnectionError: only for eu")])
    await owner.close()
    eu, us = port.role("eu"), port.role("us")
    await port.give(("eu", eu), ("us", us))
    store = await open_store(port.of(us), SystemEnv())
    queue = await store.scheduler.queue("default", "us", [], "bank")
    for id in range(2, 8):
        await store.supervisor.hear([Ended(queue, id, 1, False, "ConnectionError: only for us")])
    await Dependencies(SystemEnv(), store.supervisor).tend()
    await store.close()
    [(breaker,)] = await by_hand(port.of(us), "SELECT breaker FROM watchbill.gate")
    assert b"only for" not in breaker
    told = await by_hand(port.of(eu), "SELECT region, body FROM watchbill.incident")
    assert [region for region, _ in told] == ["*"], "whoever finds it well again can say so"
    assert b"only for" not in told[0][1]
