"""Needs: a step runs only where there is what it asks for, and takes no more than there is."""

import asyncio
import threading
from typing import Any

import pytest

from tests.rooms.conftest import emptied_postgres
from tests.rooms.scene import LONG, Ear, becomes, ends
from tests.rooms.test_capacity import Gauge
from watchbill import App, InvalidOptionError, Retry, attempt


@pytest.fixture
def fleet(request: pytest.FixtureRequest) -> str:
    """A store that several processes open at once."""
    return emptied_postgres(request)


async def test_what_nobody_here_can_do_waits_and_keeps_nobody_else(app: App) -> None:
    @app.step(needs=["gpu", "eu"])
    async def render(n: int) -> int:
        return n

    @app.step
    async def plain(n: int) -> int:
        return n

    @app.workflow
    async def rendered(n: int) -> int:
        return await render(n)

    @app.workflow
    async def plainly(n: int) -> int:
        return await plain(n)

    async with app.rooms(needs="gpu"):
        waiting = await app.start(rendered, 1)
        others = await app.start_many([(plainly, (n,)) for n in range(100)])
        assert [await ends(other) for other in others] == list(range(100))
        status = await becomes(waiting, lambda status: status.steps)
        assert (status.health, status.steps[0].state) == ("waiting_for_agent", "ready")
        assert "but there is no agent for eu, gpu; start one: watchbill agent APP" in str(await waiting.explain())
    async with app.rooms(needs=["eu", "gpu", "tape"]):
        assert await ends(waiting) == 1


@pytest.mark.parametrize(("have", "most"), [({"gpu": 1}, 1), ({"gpu": 2, "eu": 0}, 2), ({"gpu": 7}, 7)])
async def test_no_more_is_taken_than_there_is(app: App, have: dict[str, int], most: int) -> None:
    gauge = Gauge()

    @app.step(needs={"gpu": 1})
    async def render(n: int) -> int:
        with gauge:
            for _ in range(5):
                await asyncio.sleep(0.001)
        return n

    @app.workflow
    async def wf() -> int:
        return sum(await asyncio.gather(*(render(n) for n in range(20))))

    async with app.rooms(needs=have):
        assert await ends(await app.start(wf)) == 190
    assert 1 <= gauge.most <= most


async def test_amounts_are_counted_over_all_steps_that_take_of_them(app: App) -> None:
    taken, most, inside = [0], [0], asyncio.Event()

    async def take(amount: int) -> None:
        taken[0] += amount
        most[0] = max(most[0], taken[0])
        inside.set()
        await asyncio.sleep(0.002)
        taken[0] -= amount

    @app.step(needs={"gpu": 1})
    async def small() -> None:
        await take(1)

    @app.step(needs=["gpu=2", "eu"])
    async def large() -> None:
        await take(2)

    @app.step
    async def nothing() -> None: ...

    @app.workflow
    async def wf() -> None:
        await asyncio.gather(*(step() for _ in range(8) for step in (small, large, nothing)))

    async with app.rooms(needs={"gpu": 3, "eu": 0}):
        await ends(await app.start(wf))
    assert 2 <= most[0] <= 3


async def test_a_thread_that_nobody_can_stop_keeps_what_it_took(app: App, ear: Ear) -> None:
    begun, release = threading.Event(), threading.Event()
    numbers: list[int] = []

    @app.step(needs={"gpu": 1}, timeout="500ms", retry=Retry(1, backoff="1ms"))
    def stubborn() -> int:
        numbers.append(attempt().number)
        if attempt().number == 1:
            begun.set()
            release.wait(LONG)
        return attempt().number

    @app.workflow
    async def wf() -> int:
        return await stubborn()

    async with app.rooms(needs={"gpu": 1}):
        handle = await app.start(wf, id="r")
        await ear.hears("step.late", "r")
        await becomes(handle, lambda status: status.steps[0].state == "ready")
        assert numbers == [1], "the thread still has it"
        release.set()
        assert await ends(handle) == 2


async def test_what_this_process_has_needs_no_row(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.step(needs="gpu")
    async def render() -> str:
        return "rendered"

    @app.step(needs={"gpu": 1})
    async def takes() -> str:
        return "taken"

    @app.workflow
    async def wf() -> list[str]:
        return [await render(), await takes()]

    async with app.rooms(needs={"gpu": 1}):
        doors: Any = app._hall._store.scheduler  # type: ignore[attr-defined]
        turn, rows = doors.turn, list[str]()

        async def seen(written: Any, **options: Any) -> Any:
            rows.extend(row.call for row in written.attempts)
            return await turn(written, **options)

        monkeypatch.setattr(doors, "turn", seen)
        assert await ends(await app.start(wf)) == ["rendered", "taken"]
    assert rows == ["takes"]


async def test_each_step_runs_with_the_agent_that_can(fleet: str) -> None:
    """Two processes, as it were, of one fleet: two Apps of the same code on one store."""
    ran: dict[str, list[str]] = {"gpu": [], "tape": []}

    def a_program(name: str) -> tuple[App, Any]:
        app = App(fleet)

        @app.step(needs="gpu")
        async def render() -> None:
            ran[name].append("render")

        @app.step(needs="tape")
        async def store() -> None:
            ran[name].append("store")

        @app.workflow
        async def both() -> None:
            await asyncio.gather(*(step() for _ in range(10) for step in (render, store)))

        return app, both

    (first, both), (second, _) = a_program("gpu"), a_program("tape")
    async with first.rooms(needs="gpu"), second.rooms(needs="tape", scheduler=False, supervisor=False):
        await ends(await first.start(both))
    assert ran == {"gpu": ["render"] * 10, "tape": ["store"] * 10}


async def test_a_step_that_is_defined_while_the_rooms_are_open_waits_where_it_should(app: App) -> None:
    async with app.rooms():

        @app.step(needs="gpu")
        async def late() -> str:
            return "late"

        @app.workflow
        async def wf() -> str:
            return await late()

        handle = await app.start(wf)
        await becomes(handle, lambda status: status.health == "waiting_for_agent")
    async with app.rooms(needs="gpu"):
        assert await ends(handle) == "late"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"needs": "GPU"}, "did you mean 'gpu'"),
        ({"needs": 3}, "needs= cannot be 3"),
        ({"needs": {"gpu": -1}}, "an amount is a whole number"),
        ({"region": "e u"}, "region of rooms"),
        ({"profile": "fast"}, "profile is one of critical, standard, batch"),
    ],
)
async def test_odd_rooms_are_refused(app: App, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOptionError, match=said):
        async with app.rooms(**options):
            pass


def test_odd_needs_of_a_step_are_refused_with_its_name(app: App) -> None:
    with pytest.raises(InvalidOptionError, match=r"step 'render': needs= has 'Gpu'.*did you mean 'gpu'"):

        @app.step(needs="Gpu")
        async def render() -> None: ...


async def test_priority_of_a_step_decides_who_comes_first_when_there_is_little_room(app: App) -> None:
    order: list[str] = []

    @app.step
    async def plain(n: int) -> None:
        order.append("plain")

    @app.step(priority=5)
    async def urgent() -> None:
        order.append("urgent")

    @app.workflow
    async def wf() -> None:
        await asyncio.gather(*(plain(n) for n in range(10)), plain.options(priority=9)(10), urgent())

    async with app.rooms(slots=1):
        await ends(await app.start(wf))
    assert order[:3] == ["plain", "urgent", "plain"]


@pytest.mark.parametrize(
    ("profile", "agent", "seconds"),
    [
        ("critical", False, 8),
        ("standard", False, 30),
        ("batch", False, 90),
        ("critical", True, 30),
        ("standard", True, 30),
        ("batch", True, 90),
    ],
)
async def test_a_profile_says_how_soon_a_process_is_missed(fleet: str, profile: str, agent: bool, seconds: int) -> None:
    app = App(fleet)
    async with app.rooms(agent=agent, profile=profile):
        hall: Any = app._hall
        [scheduler] = [room for room in hall._house.rooms if room.name == "scheduler"]
        assert scheduler._leases._lasting == seconds * 1_000_000
