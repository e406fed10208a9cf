"""Paused families: a pause reaches the runs below a run, and a paused run does not complete."""

import asyncio
from typing import Any

from tests.rooms.scene import becomes, ends
from watchbill import App, Handle
from watchbill.flow.workflows import Workflow
from watchbill.model.run import FOR_RESUME


class Family:
    """A grandparent, a parent and a child that count; each step waits for a permit."""

    def __init__(self, app: App) -> None:
        self.begun: list[str] = []
        self.permits = asyncio.Semaphore(0)

        @app.step
        async def count(name: str) -> None:
            self.begun.append(name)
            await self.permits.acquire()

        @app.workflow
        async def child(name: str, many: int) -> str:
            for _ in range(many):
                await count(name)
            return name

        @app.workflow
        async def parent(name: str, many: int) -> str:
            return await child(name, many)

        self.child: Workflow[[str, int], str] = child
        self.parent: Workflow[[str, int], str] = parent


async def is_paused(handle: Handle[Any]) -> None:
    await becomes(handle, lambda status: status.paused)


async def test_pause_reaches_a_child_and_resume_lets_both_complete(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.parent, "a", 3, id="p")
        child: Handle[str] = app.handle("p/child")
        await becomes(run, lambda _: family.begun)
        await run.pause("a flood")
        await is_paused(run)
        await is_paused(child)
        family.permits.release()
        await becomes(child, lambda status: [step.state for step in status.steps] == ["completed"])
        assert family.begun == ["a"]
        family.permits.release()
        family.permits.release()
        await run.resume()
        assert await ends(run) == "a"
        assert not (await child.status()).paused
    assert family.begun == ["a", "a", "a"]


async def test_a_paused_run_completes_when_it_is_resumed(app: App) -> None:
    family = Family(app)
    async with app.rooms():
        run = await app.start(family.child, "a", 1, id="r")
        await becomes(run, lambda _: family.begun)
        await run.pause("let me look")
        await is_paused(run)
        family.permits.release()
        status = await becomes(run, lambda status: status.waiting_for == FOR_RESUME)
        assert status.state == "waiting"
        await run.resume()
        assert await ends(run) == "a"
