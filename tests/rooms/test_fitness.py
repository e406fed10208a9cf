"""Whether the code about to be deployed fits the runs that are there."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.rooms.scene import becomes, ends
from watchbill import App, receive
from watchbill.app import fitness
from watchbill.app.fitness import Misfit, misfit_of, misfits_of_source, records


def a_program(url: str, *names: str) -> tuple[App, dict[str, Any]]:
    """An App whose workflows of these names do a step, and wait if their name says so."""
    app = App(url)
    found: dict[str, Any] = {}

    def add(name: str) -> None:
        @app.step(name=f"{name}_step")
        async def act(n: int) -> int:
            return n

        async def run(n: int) -> Any:
            await act(n)
            return await receive("go on") if name.startswith("wait") else n

        found[name] = app.workflow(name=name)(run)

    for name in names:
        add(name)
    return app, found


async def misfits(url: str, app: App, recent: int) -> dict[str, Misfit | None]:
    hall: Any = app._hall

    async def read(client: Any) -> dict[str, Misfit | None]:
        return {one.run.id: misfit_of(app.registry, one) async for one in records(client, "default", recent=recent)}

    found: dict[str, Misfit | None] = await hall.read(read)
    return found


async def test_live_runs_and_the_newest_that_have_ended_are_held_against_the_code(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitness, "PAGE", 2)
    app, code = a_program(kept, "order", "waits")
    async with app.rooms():
        for n in range(5):
            await ends(await app.start(code["order"], n, id=f"o-{n}"))
        for n in range(3):
            await becomes(await app.start(code["waits"], n, id=f"w-{n}"), lambda status: status.state == "waiting")
    same, _ = a_program(kept, "order", "waits")
    found = await misfits(kept, same, recent=3)
    assert found == dict.fromkeys(["w-0", "w-1", "w-2", "o-2", "o-3", "o-4"])
    gone, _ = a_program(kept)
    found = await misfits(kept, gone, recent=100)
    assert [found[f"o-{n}"] for n in range(5)] == [None] * 5, "nobody drives what has ended"
    assert found["w-1"] == Misfit("w-1", "waits", "workflow 'waits' version 1", "no such code is here")


def other(app: App) -> Callable[..., Any]:
    async def waits(n: int) -> Any:
        return await receive("go on")

    return app.workflow(waits)


async def test_code_that_asks_for_something_else_does_not_fit(kept: str) -> None:
    app, code = a_program(kept, "order", "waits")
    async with app.rooms():
        await ends(await app.start(code["order"], 1, id="o-1"))
        await becomes(await app.start(code["waits"], 1, id="w-1"), lambda status: status.state == "waiting")
    changed = App(kept)
    other(changed)

    @changed.workflow
    async def order(n: int) -> int:
        return n + 1

    found = await misfits(kept, changed, recent=10)
    for id in ("o-1", "w-1"):
        misfit = found[id]
        assert misfit is not None
        assert "_step" in misfit.recorded


async def test_source_that_no_replay_could_repeat_does_not_fit(file: str) -> None:
    app, _ = a_program(file, "order")

    @app.workflow
    async def tells_time() -> float:
        return time.time()

    [misfit] = misfits_of_source(app.registry)
    assert (misfit.run, misfit.workflow) == ("", "tells_time")
    assert "time.time reads a clock" in misfit.asked
