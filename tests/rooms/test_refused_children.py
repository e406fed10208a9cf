"""A child that cannot be started where a role of a region drives its parent: the call fails, and nothing else does."""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rooms.regional import until
from tests.rooms.scene import ends
from tests.servers import PostgresServer
from watchbill import App, RunFailed, receive
from watchbill.store.open import migrate


class Shore:
    """A store of its own, whose regions get roles when they are asked for."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.schema = f"shore_{uuid.uuid4().hex[:8]}"
        self.owner = server.url(schema=self.schema)
        self.roles: dict[str, str] = {}

    def part(self) -> str:
        """Give the regions their roles; gives the address of one."""
        self.roles = {region: f"{self.schema}_{region}" for region in ("eu", "us")}
        for role in self.roles.values():
            self.server.sql(f"CREATE ROLE {role} LOGIN")
        migrate(self.owner, list(self.roles.items()))
        return self.server.url(user=self.roles["eu"], schema=self.schema)


@pytest.fixture
def shore(postgres: PostgresServer) -> Iterator[Shore]:
    shore = Shore(postgres)
    yield shore
    postgres.sql(f"DROP SCHEMA {shore.schema} CASCADE")
    for role in shore.roles.values():
        postgres.sql(f"DROP OWNED BY {role}")
        postgres.sql(f"DROP ROLE {role}")


class Program:
    """What is tried; its charges are counted."""

    def __init__(self, url: str) -> None:
        self.app = app = App(url)
        self.charged: list[str] = []

        @app.workflow(region="us")
        async def abroad(cargo: str) -> str:
            return f"{cargo} was abroad"

        @app.step(uses="bank")
        async def charge(cargo: str) -> None:
            self.charged.append(cargo)

        @app.workflow
        async def voyage(cargo: str) -> str:
            return await abroad(cargo)

        @app.workflow
        async def both(cargo: str) -> None:
            await asyncio.gather(abroad(cargo), charge(cargo))

        @app.workflow
        async def patient(cargo: str) -> str:
            try:
                return await abroad(cargo)
            except RunFailed:
                return f"{await receive('news', str)}, {await receive('news', str)}"

        self.voyage: Any = voyage
        self.both: Any = both
        self.patient: Any = patient


async def test_what_was_asked_for_beside_it_does_not_begin(shore: Shore) -> None:
    program = Program(await asyncio.to_thread(shore.part))
    async with program.app.rooms(region="eu"):
        with pytest.raises(RunFailed, match="connects as the role of region"):
            await ends(await program.app.start(program.both, "tea", region="eu"))
        assert shore.server.sql(f"SELECT count(*) FROM {shore.schema}.attempt") == "0"
    assert program.charged == []


async def test_messages_that_came_before_the_run_began_are_there(shore: Shore) -> None:
    program = Program(await asyncio.to_thread(shore.part))
    async with program.app.rooms(region="eu"):
        run = await program.app.start(program.patient, "tea", region="eu", delay="1s")
        await run.send("news", "one")
        await run.send("news", "two")
        assert await ends(run) == "one, two"


async def test_one_that_ended_before_there_were_roles_has_ended(shore: Shore) -> None:
    before = Program(shore.owner)
    async with before.app.rooms(region="eu"):
        await before.app.start(before.voyage, "tea", id="voyage", region="eu")

        async def started() -> bool:
            return "voyage/abroad" in [run.id async for run in before.app.runs()]

        await until(started)
    async with before.app.rooms(region="us"):
        await ends(before.app.handle("voyage/abroad"))
    await before.app.close()
    after = Program(await asyncio.to_thread(shore.part))
    async with after.app.rooms(region="eu"):
        assert await ends(after.app.handle("voyage", after.voyage)) == "tea was abroad"
