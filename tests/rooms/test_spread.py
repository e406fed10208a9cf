"""Many at once: spread with its four needs, and gather_settled."""

import asyncio
from typing import Any

import pytest

from tests.rooms.scene import LOOK_EVERY, becomes, ends
from watchbill import App, InvalidOptionError, Permanent, RunFailed, StepFailed, WatchbillError, gather_settled, spread


class Crowd:
    """A step that counts how many of it run at once, and fails for some items."""

    def __init__(self, app: App) -> None:
        self.running = self.most = 0
        self.ran: list[int] = []
        self.cancelled: list[int] = []

        @app.step(retry=0)
        async def work(n: int) -> int:
            self.ran.append(n)
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.sleep(0.001 if n < 500 else 0.5 if n < 1_000 else 30)
            except asyncio.CancelledError:
                self.cancelled.append(n)
                raise
            finally:
                self.running -= 1
            if n < 0:
                raise Permanent(f"no {n}")
            return 2 * n

        @app.workflow
        async def crowd(items: list[int], at_once: int, need: str) -> Any:
            found: Any = await spread(work, items, at_once, need)  # type: ignore[call-overload]
            if need in ("all", "any"):
                return found
            return [one.value if one.ok else type(one.error).__name__ for one in found]

        self.crowd = crowd


async def test_all_gives_the_results_in_order_so_many_at_once(app: App) -> None:
    crowd = Crowd(app)
    async with app.rooms():
        assert await ends(await app.start(crowd.crowd, list(range(40)), 7, "all")) == [2 * n for n in range(40)]
        assert await ends(await app.start(crowd.crowd, [], 7, "all")) == []
    assert 1 < crowd.most <= 7


async def test_all_stops_at_the_first_failure(app: App) -> None:
    crowd = Crowd(app)
    async with app.rooms():
        with pytest.raises(RunFailed, match="no -1"):
            await ends(await app.start(crowd.crowd, [-1, 1_000, 1_001, 2], 3, "all"))
        async with asyncio.timeout(20):
            while sorted(crowd.cancelled) != [1_000, 1_001]:
                await asyncio.sleep(LOOK_EVERY)
    assert 2 not in crowd.ran


async def test_any_gives_the_first_result(app: App) -> None:
    crowd = Crowd(app)
    async with app.rooms():
        assert await ends(await app.start(crowd.crowd, [-1, 1_000, 5, 1_001], 10, "any")) == 10
        with pytest.raises(RunFailed, match="no -2"):
            await ends(await app.start(crowd.crowd, [-1, -2], 1, "any"))


async def test_a_quorum_is_more_than_half(app: App) -> None:
    crowd = Crowd(app)
    async with app.rooms():
        told = await ends(await app.start(crowd.crowd, [1, -1, 2, 1_000, 600], 10, "quorum"))
        assert told == [2, "StepFailed", 4, "CancelledError", 1_200]
        with pytest.raises(RunFailed, match="no -"):
            await ends(await app.start(crowd.crowd, [1, -1, -2, 1_000], 10, "quorum"))


async def test_best_effort_says_how_each_ended(app: App) -> None:
    crowd = Crowd(app)
    async with app.rooms():
        told = await ends(await app.start(crowd.crowd, [1, -1, 2], 2, "best-effort"))
    assert told == [2, "StepFailed", 4]


@pytest.mark.parametrize("need", ["all", "any", "quorum", "best-effort"])
async def test_of_five_at_once_of_which_two_fail_the_status_says_how_each_ended(app: App, need: str) -> None:
    shards = [501, -2, 502, -4, 503]  # what fails does so at once
    crowd = Crowd(app)
    async with app.rooms():
        run = await app.start(crowd.crowd, shards, 3, need)
        if need == "all":
            with pytest.raises(RunFailed, match="no -"):
                await ends(run)
        else:
            settled: list[Any] = [1_002, "StepFailed", 1_004, "StepFailed", 1_006]
            assert await ends(run) in ([1_002, 1_004, 1_006] if need == "any" else [settled])
        status = await becomes(run, lambda status: all(step.state != "running" for step in status.steps))
    states = {step.key: step.state for step in status.steps}
    begun = shards[: len(states)]
    assert [step.key for step in status.steps] == ["work", *(f"work.{n}" for n in range(2, len(begun) + 1))]
    for shard, state in zip(begun, states.values(), strict=True):
        allowed = ("failed", "cancelled") if shard < 0 else ("completed", "cancelled")
        assert state in (allowed if need in ("all", "any") else allowed[:1])
    assert "failed" in states.values()


@pytest.mark.parametrize("need", ["all", "any", "quorum", "best-effort"])
async def test_of_five_of_which_two_fail_the_status_says_which(app: App, need: str) -> None:
    shards = [1, -2, 3, -4, 5]
    crowd = Crowd(app)
    async with app.rooms():
        run = await app.start(crowd.crowd, shards, 1, need)
        if need == "all":
            with pytest.raises(RunFailed, match="no -2"):
                await ends(run)
        else:
            settled = [2, "StepFailed", 6, "StepFailed", 10]
            assert await ends(run) == {"any": 2, "quorum": settled, "best-effort": settled}[need]
        states = [step.state for step in (await run.status()).steps]
    asked = {"all": 2, "any": 1, "quorum": 5, "best-effort": 5}[need]  # one after the other: the rest is not begun
    assert crowd.ran == shards[:asked]
    assert states == ["completed" if shard > 0 else "failed" for shard in shards[:asked]]


async def test_keys_are_counted_by_item_not_by_start(app: App) -> None:
    crowd = Crowd(app)
    async with app.rooms():
        run = await app.start(crowd.crowd, [1, 2, 3], 1, "all")
        await ends(run)
        assert [step.key for step in (await run.status()).steps] == ["work", "work.2", "work.3"]


async def test_children_and_plain_coroutines_can_be_spread(app: App) -> None:
    @app.workflow
    async def child(n: int) -> int:
        return n + 1

    @app.workflow
    async def parent() -> list[int]:
        async def twice(n: int) -> int:
            return await child(n) + await child(n)

        return [*await spread(child, [1, 2]), *await spread(twice, [1, 2])]

    async with app.rooms():
        assert await ends(await app.start(parent)) == [2, 3, 4, 6]


@pytest.mark.parametrize(
    ("at_once", "need", "items", "said"),
    [
        (0, "all", [1], "above zero"),
        (1, "al", [1], "did you mean 'all'"),
        (1, "any", [], "can never be met"),
        (1, "quorum", [], "can never be met"),
    ],
)
async def test_odd_wishes_are_refused(app: App, at_once: int, need: str, items: list[int], said: str) -> None:
    crowd = Crowd(app)
    async with app.rooms():
        with pytest.raises(RunFailed, match=said) as caught:
            await ends(await app.start(crowd.crowd, items, at_once, need))
    assert caught.value.error.type.endswith(InvalidOptionError.__name__)


async def test_settled_is_everything(app: App) -> None:
    crowd = Crowd(app)

    @app.workflow
    async def settles() -> list[Any]:
        work = app.registry.step("work")
        found = await gather_settled(work(1), work(-1))
        return [found[0].value, found[1].ok, isinstance(found[1].error, StepFailed)]

    async with app.rooms():
        assert await ends(await app.start(settles)) == [2, False, True]
    assert crowd.ran == [1, -1]


async def test_outside_a_workflow_it_says_so() -> None:
    async def work(n: int) -> int:
        return n

    with pytest.raises(WatchbillError, match="spread\\(\\) is for workflows"):
        await spread(work, [1])
