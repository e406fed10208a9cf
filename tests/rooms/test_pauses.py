"""Pauses by name: nothing of a paused step, workflow, capability or dependency starts anywhere; what runs goes on."""

import asyncio
from datetime import timedelta
from typing import Any, cast

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, becomes, ends
from watchbill import App, Handle, InvalidOptionError, RunStatus, attempt, sleep
from watchbill.app.hall import Hall
from watchbill.flow.workflows import Workflow
from watchbill.model.gate import GateAct


class Stage:
    """Steps that begin, and end when a test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = asyncio.Event()
        self._changed = asyncio.Event()

    async def play(self, word: str) -> str:
        self.begun.append(word)
        self._changed.set()
        self._changed = asyncio.Event()
        await self.may_end.wait()
        return word

    async def has_begun(self, count: int) -> None:
        async with asyncio.timeout(LONG):
            while len(self.begun) < count:
                await self._changed.wait()


async def order(app: App, act: GateAct, name: str) -> None:
    await cast(Hall, app._hall).order_gate(name, act, by="ann", reason="a flood")


async def waits(handle: Handle[Any]) -> RunStatus:
    return await becomes(handle, lambda status: status.health == "waiting_for_dependency")


@pytest.fixture
def probe(app: App) -> Workflow[[], None]:
    """A workflow that does nothing: when it has ended, its scheduler has looked since it was started."""

    @app.workflow
    async def probing() -> None: ...

    return probing


async def heard(app: App, probe: Workflow[[], None]) -> None:
    """Wait until the scheduler has heard of what was ordered before."""
    await ends(await app.start(probe))


@pytest.mark.parametrize("name", ["step:encode", "workflow:film", "needs:gpu", "uses:farm"])
async def test_a_paused_name_starts_nothing_and_goes_on_when_it_is_opened(
    app: App, probe: Workflow[[], None], name: str
) -> None:
    began: list[str] = []

    @app.step(needs="gpu")
    async def encode(word: str) -> str:
        began.append(word)
        return word

    @app.step(uses="farm")
    async def render(word: str) -> str:
        began.append(word)
        return word

    @app.step
    async def note(word: str) -> str:
        return word

    @app.workflow
    async def film(word: str) -> str:
        return await (render(word) if name == "uses:farm" else encode(word))

    @app.workflow
    async def memo(word: str) -> str:
        return await note(word)

    async with app.rooms(needs=["gpu"]):
        assert await ends(await app.start(film, "before")) == "before"
        await order(app, GateAct.PAUSE, name)
        await heard(app, probe)
        handle = await app.start(film, "after")
        if name == "workflow:film":
            explained = await says(handle, "paused by")
        else:
            await waits(handle)
            explained = str(await handle.explain())
        assert f"'{name}', paused by ann since " in explained
        assert f"(a flood): `watchbill gates open {name}`" in explained
        assert await ends(await app.start(memo, "another")) == "another"
        assert began == ["before"]
        [gate] = [gate for gate in await app.gates() if gate.name == name]
        assert (gate.paused_by, gate.running, gate.waiting) == ("ann", 0, 1)
        metrics = await app.metrics()
        assert (metrics.queued, metrics.queue_age) == (0, timedelta()), "nothing could start it"
        await order(app, GateAct.OPEN, name)
        assert await ends(handle) == "after"
        assert began == ["before", "after"]


async def says(handle: Handle[Any], words: str) -> str:
    async with asyncio.timeout(LONG):
        while words not in (said := str(await handle.explain())):
            await asyncio.sleep(LOOK_EVERY)
    return said


async def test_what_runs_goes_on_and_what_follows_in_the_same_process_waits(
    app: App, probe: Workflow[[], None]
) -> None:
    stage = Stage()

    @app.step
    async def scene(word: str) -> str:
        return await stage.play(word)

    @app.workflow
    async def film() -> str:
        return await scene("first") + await scene("second")

    async with app.rooms():
        handle = await app.start(film)
        await stage.has_begun(1)
        await order(app, GateAct.PAUSE, "workflow:film")
        await heard(app, probe)
        stage.may_end.set()
        await waits(handle)
        assert stage.begun == ["first"]
        await order(app, GateAct.OPEN, "workflow:film")
        assert await ends(handle) == "firstsecond"


async def test_calls_that_wait_for_a_slot_in_the_schedulers_own_process_are_stopped_too(
    app: App, probe: Workflow[[], None]
) -> None:
    stage = Stage()

    @app.step
    async def scene(word: str) -> str:
        return await stage.play(word)

    @app.step
    async def credit(word: str) -> str:
        stage.begun.append(word)
        return word

    @app.workflow
    async def film() -> list[str]:
        return list(await asyncio.gather(scene("scene"), *(credit(word) for word in "abc")))

    async with app.rooms(slots=1):
        handle = await app.start(film)
        await stage.has_begun(1)
        await order(app, GateAct.PAUSE, "step:credit")
        await heard(app, probe)
        stage.may_end.set()
        status = await becomes(handle, lambda status: len(status.steps) == 4)
        assert sum(step.state == "completed" for step in status.steps) == 1
        await waits(handle)
        assert stage.begun == ["scene"]
        await order(app, GateAct.OPEN, "step:credit")
        assert await ends(handle) == ["scene", "a", "b", "c"]


async def test_time_goes_on_in_runs_of_a_paused_workflow(app: App, probe: Workflow[[], None]) -> None:
    @app.step
    async def scene(word: str) -> str:
        return word

    @app.workflow
    async def film() -> str:
        await sleep("3s")  # until then the pause is heard, also on a busy machine
        return await scene("late")

    async with app.rooms():
        handle = await app.start(film)
        await becomes(handle, lambda status: status.state == "waiting")
        await order(app, GateAct.PAUSE, "workflow:film")
        await heard(app, probe)
        await waits(handle)  # its time has come, and its step waits
        await order(app, GateAct.OPEN, "workflow:film")
        assert await ends(handle) == "late"


async def test_a_retry_of_a_paused_step_waits(app: App) -> None:
    tries = []

    @app.step(retry=1)
    async def scene() -> int:
        tries.append(attempt().number)
        if attempt().number == 1:
            await order(app, GateAct.PAUSE, "step:scene")
            raise ConnectionError("once")
        return attempt().number

    @app.workflow
    async def film() -> int:
        return await scene()

    async with app.rooms():
        handle = await app.start(film)
        await waits(handle)
        assert tries == [1]
        await order(app, GateAct.OPEN, "step:scene")
        assert await ends(handle) == 2


@pytest.mark.parametrize(
    ("name", "act", "said"),
    [
        ("stripe", GateAct.PAUSE, "a gate is called step:NAME"),
        ("step:", GateAct.PAUSE, "a gate is called step:NAME"),
        ("step:" + "x" * 9_000, GateAct.PAUSE, "at most 500 printable characters"),
        ("step:charge", GateAct.CLOSE, "only a dependency"),
        ("step:charge", GateAct.OPEN, "there is no gate 'step:charge'"),
        ("limit:charge", GateAct.PAUSE, "there is no gate 'limit:charge'"),
    ],
)
async def test_what_cannot_be_ordered_is_refused_in_words(app: App, name: str, act: GateAct, said: str) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        await order(app, act, name)


@pytest.mark.parametrize("limit", [0, -1, True, "3", None, 10**30])
async def test_a_logbook_of_no_length_is_refused(app: App, limit: Any) -> None:
    with pytest.raises(InvalidOptionError, match="a number from 1 to 100,000"):
        await app.logbook(limit)
