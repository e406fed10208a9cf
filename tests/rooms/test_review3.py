"""Review: a run is cancelled, or fails elsewhere, while an attempt of it in doubt may still act."""
import asyncio
from typing import Any

import pytest

from watchbill import App, NotDone, Permanent, RunCancelled, RunFailed, sleep
from watchbill.testing.watch import Watch

app = App("sqlite:///:memory:")
did: list[str] = []


@app.step
async def take_back(receipt: str | None, order: str) -> None:
    did.append("undo")


async def not_done(order: str) -> Any:
    did.append("probe")
    return NotDone()


@app.step(idempotent=False, undo=take_back, timeout="5s", probe=not_done)
async def hangs(order: str) -> str:
    did.append("charge")
    try:
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        await asyncio.sleep(8)
        did.append("stopped")
        raise
    return "x"


@app.step(retry=0)
async def fails(order: str) -> str:
    raise Permanent("no")


@app.workflow
async def alone(order: str) -> str:
    return await hangs(order)


@app.workflow
async def beside(order: str) -> Any:
    async def late() -> None:
        await sleep(7)
        await fails("x")
    return await asyncio.gather(hangs(order), late())


@pytest.mark.parametrize("how", ["cancel", "sibling"])
def test_nothing_is_undone_before_it_was_asked_about_when_it_could_no_longer_act(watch: Watch, how: str) -> None:
    did.clear()
    run = watch.start(alone if how == "cancel" else beside, "a", id="r")
    watch.jump("7s")
    if how == "cancel":
        run.cancel("not any more")
    watch.jump("2m")
    with pytest.raises((RunCancelled, RunFailed)):
        run.result()
    assert did[:3] == ["charge", "stopped", "probe"]
    assert "undo" not in did or how == "cancel"
