"""Runs that go on by `continue_as`: a wake-up and a look read the last part alone, however many there are."""

import asyncio
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes, ends
from watchbill import App, InvalidOptionError, continue_as, receive
from watchbill.env import SystemEnv
from watchbill.store.open import open_store

PARTS = 60
STEPS = 5


def a_program(url: str, **options: Any) -> tuple[App, Any]:
    app = App(url, **options)

    @app.step
    async def work(part: int) -> str:
        return f"{part}:" + "x" * 1_000

    @app.workflow
    async def endless(part: int) -> int:
        for _ in range(STEPS):
            await work(part)
        if part < PARTS:
            await continue_as(endless, part + 1)
        return await receive("go", int)

    return app, endless


async def test_wake_up_and_status_read_only_the_last_part(kept: str) -> None:
    app, endless = a_program(kept)
    async with app.rooms():
        run = await app.start(endless, 1, id="r")
        await becomes(run, lambda status: status.state == "waiting")
    await app.close()
    store = await open_store(kept, SystemEnv())
    whole = await store.client.record("default", "r", earlier=True)
    last = await store.client.record("default", "r")
    assert whole is not None
    assert last is not None
    [loaded] = await store.scheduler.load([last.run.num])
    await store.close()
    assert len(whole.journal) == PARTS * (STEPS + 1) - 1
    assert len(last.journal) == len(loaded.journal) == STEPS + 1, "with the entry that begins the part"
    assert sum(len(entry.body) for entry in loaded.journal) < 10_000
    app, endless = a_program(kept)
    ear = Ear(app)
    async with app.rooms():
        run = app.handle("r", endless)
        status = await run.status()
        assert [step.key for step in status.steps] == ["work", *[f"work.{n}" for n in range(2, STEPS + 1)]]
        assert status.state == "waiting"
        timeline = await run.timeline()
        assert len([event for event in timeline if event.kind == "step_completed"]) == PARTS * STEPS
        await run.graph()
        await run.explain()
        with pytest.raises(InvalidOptionError, match="went on by continue_as"):
            await run.rewind("work.9")
        await run.send("go", 7)
        assert await ends(run) == 7
        assert len(ear.of("run.resumed", "r")) == 1
    ear.close()


async def test_retention_takes_earlier_parts_of_an_open_run(kept: str) -> None:
    app, endless = a_program(kept, retention="50ms")
    async with app.rooms():
        run = await app.start(endless, PARTS - 9, id="r")
        await becomes(run, lambda status: status.state == "waiting")

        async def parts() -> int:
            return len([event for event in await run.timeline() if event.kind == "continued"])

        async with asyncio.timeout(LONG):
            while await parts() > 1:
                await asyncio.sleep(LOOK_EVERY)
        timeline = await run.timeline()
        assert len([event for event in timeline if event.kind == "step_completed"]) == STEPS
    await app.close()
    app, endless = a_program(kept)
    async with app.rooms():
        run = app.handle("r", endless)
        assert len((await run.status()).steps) == STEPS
        await run.send("go", 7)
        assert await ends(run) == 7
