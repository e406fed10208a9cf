"""Review: what is in doubt when its run fails elsewhere, is cancelled, retried or paused."""

from collections.abc import Iterator
from typing import Any

import pytest

from watchbill import (
    Ambiguous, App, Escalate, NotDone, Permanent, RunCancelled, RunFailed, RunUndone, ask, sleep, spread,
)
from watchbill.testing.watch import Watch
import asyncio

app = App("sqlite:///:memory:")
did: list[str] = []


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    did.clear()
    yield


async def take_back(receipt: str | None, order: str) -> None:
    did.append(f"undo {order}")

undo = app.step(name="take_back")(take_back)


@app.step(idempotent=False, undo=undo, then=[Escalate("clerks")])
async def raises_in_doubt(order: str) -> str:
    did.append(f"charge {order}")
    raise ConnectionError("the line broke, before it or after")


def broken_probe(order: str) -> Any:
    did.append("probe")
    raise RuntimeError("the bank does not answer")


@app.step(undo=undo, probe=broken_probe, then=[Escalate("clerks")])
async def ambiguous(order: str) -> str:
    did.append(f"charge {order}")
    raise Ambiguous("no answer")


@app.step(retry=0)
async def fails(order: str) -> str:
    raise Permanent("no")


@app.workflow
async def beside_raised(after: int) -> Any:
    async def late() -> None:
        await sleep(after)
        await fails("x")
    return await asyncio.gather(raises_in_doubt("a"), late())


@app.workflow
async def beside_ambiguous(after: int) -> Any:
    async def late() -> None:
        await sleep(after)
        await fails("x")
    return await asyncio.gather(ambiguous("a"), late())


def test_what_raised_in_doubt_is_undone_when_a_sibling_fails(watch: Watch) -> None:
    run = watch.start(beside_raised, 60, id="r")
    watch.jump("30s")
    watch.jump("60s")
    with pytest.raises(RunFailed) as caught:
        run.result()
    assert did == ["charge a", "undo a"]
    assert type(caught.value) is RunUndone


@pytest.mark.parametrize("after", [3, 60])
def test_what_is_ambiguous_is_undone_when_a_sibling_fails(watch: Watch, after: int) -> None:
    run = watch.start(beside_ambiguous, after, id="r")
    watch.jump("2s")
    watch.jump("60s")
    with pytest.raises(RunFailed) as caught:
        run.result()
    assert did[-1] == "undo a"
    assert type(caught.value) is RunUndone


@app.step(idempotent=False, undo=undo, timeout="5s", probe=lambda order: did.append("probe") or NotDone())
async def hangs(order: str) -> str:
    did.append(f"charge {order}")
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        did.append("told to stop")
        await asyncio.sleep(8)
        did.append("stopped")
        raise
    return "x"


@app.workflow
async def hanging(order: str) -> str:
    return await hangs(order)


def test_retry_of_a_run_does_not_try_again_blindly_what_settles(watch: Watch) -> None:
    run = watch.start(hanging, "a", id="r")
    watch.jump("7s")
    run.retry()
    watch.jump("2s")
    assert did.count("charge a") == 1 or "probe" in did


@app.step
async def slow(order: str) -> str:
    await asyncio.sleep(10)
    return order


@app.workflow
async def asking(order: str) -> str:
    await slow(order)
    try:
        return await ask("may I?", str, to="clerks", within="1h")
    except TimeoutError:
        return "nobody"


def test_a_question_that_was_put_off_by_a_pause_says_until_when_there_is_time(watch: Watch) -> None:
    run = watch.start(asking, "a", id="r")
    watch.jump("2s")
    run.pause("wait")
    watch.jump("40m")
    run.resume()
    watch.jump("1s")
    [trial] = watch._trials.values()
    [item] = trial.do("the item", app.inbox)
    assert "wakes at 2026-02-05 01:00:10Z" in str(run.explain())
    assert "There is time until 2026-02-05 01:00:10Z" in str(run.explain())
    assert item.due_at == 1_770_253_210_000_000  # that time
    watch.jump("21m")
    assert run.result() == "nobody"
    assert [event.kind for event in run.timeline()].count("remind") == 1
