"""The calls of a run, in order of call, each with its attempts; what ran beside them is told as what it is."""

import asyncio
from typing import Any, Literal

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, becomes, ends
from watchbill import (
    Ambiguous,
    App,
    Done,
    Escalate,
    Handle,
    NotDone,
    Retry,
    RunFailed,
    RunUndone,
    Unknown,
    attempt,
    gather_settled,
    sleep,
    spread,
)
from watchbill.app.status import StepStatus
from watchbill.model.failure import Cause


@pytest.fixture
def app(kept: str) -> App:
    return App(kept)


async def steps_of(handle: Handle[Any]) -> dict[str, StepStatus]:
    return {step.key: step for step in (await handle.status()).steps}


async def kinds_of(handle: Handle[Any], call: str) -> list[str]:
    return [event.kind for event in await handle.timeline() if event.step == call]


# --- in order of call


async def test_parallel_calls_are_told_in_the_order_in_which_they_were_made(app: App) -> None:
    may_end = asyncio.Event()

    @app.step(retry=Retry(1, backoff="1ms"))
    async def odd(n: int) -> int:
        if n % 2 and attempt().number == 1:
            raise ValueError(f"odd {n}")
        return n

    @app.step
    async def last() -> None:
        await may_end.wait()

    @app.step
    async def first() -> None:
        while "shows" not in await steps_of(handle):
            await asyncio.sleep(LOOK_EVERY)
        may_end.set()

    @app.step
    async def shows() -> None:
        attempt().progress(1, 2)  # it has a row by that
        await may_end.wait()

    @app.step(retry=0)
    async def fails() -> None:
        raise ConnectionError("no")

    @app.workflow
    async def all_at_once() -> None:
        await gather_settled(*(odd(n) for n in range(1, 5)))
        await gather_settled(shows(), fails(), last(), first())

    async with app.rooms():
        handle = await app.start(all_at_once, id="o")
        await ends(handle)
        keys = [step.key for step in (await handle.status()).steps]
    assert keys == ["odd", "odd.2", "odd.3", "odd.4", "shows", "fails", "last", "first"]


# --- what was undone, and what its run wanted no more


async def test_a_call_whose_undo_is_done_is_undone(app: App) -> None:
    @app.step
    async def reserve() -> int:
        return 1

    @reserve.undo
    async def release(result: int) -> None: ...

    @app.step
    async def note() -> None: ...

    @app.step(retry=0)
    async def charge() -> None:
        raise ConnectionError("no")

    @app.workflow
    async def order() -> None:
        await reserve()
        await note()
        await charge()

    async with app.rooms():
        handle = await app.start(order, id="o")
        with pytest.raises(RunUndone):
            await ends(handle)
        states = {key: step.state for key, step in (await steps_of(handle)).items()}
    assert states == {"reserve": "undone", "note": "completed", "charge": "failed", "undo:reserve": "completed"}


@pytest.mark.parametrize("on_failure", ["keep", "undo"])
async def test_calls_in_flight_are_told_when_their_run_has_ended(app: App, on_failure: Literal["keep", "undo"]) -> None:
    begun = asyncio.Event()

    @app.step
    async def unseen() -> None:  # no row: it has run for less than a second
        begun.set()
        await asyncio.sleep(60)

    @app.step
    async def seen() -> None:
        attempt().progress(1, 2)  # it has a row by that
        await asyncio.sleep(60)

    @app.step(needs="gpu")
    async def waits() -> None: ...

    @app.step(retry=0)
    async def fails() -> None:
        await begun.wait()
        while "seen" not in await steps_of(handle):
            await asyncio.sleep(LOOK_EVERY)
        raise ConnectionError("no")

    @app.workflow(on_failure=on_failure)
    async def order() -> None:
        await asyncio.gather(unseen(), seen(), waits(), fails())

    async with app.rooms():
        handle = await app.start(order, id="o")
        with pytest.raises(RunFailed):
            await ends(handle)
        status = await becomes(handle, lambda status: all(step.state != "running" for step in status.steps))
        status = await becomes(
            handle, lambda status: all(one.ended_at for step in status.steps for one in step.attempts)
        )
        [agent] = await app.agents()
        steps = {step.key: step for step in status.steps}
        assert {key: step.state for key, step in steps.items()} == {
            "unseen": "cancelled", "seen": "cancelled", "waits": "cancelled", "fails": "failed",
        }  # fmt: skip
        for key in ("unseen", "seen"):
            [one] = steps[key].attempts
            assert (one.number, f"{one.agent:x}", one.cause) == (1, agent.id, Cause.CANCELLED)
            assert None not in (one.started_at, one.ended_at)
        assert steps["waits"].attempts == ()
        assert status.progress is not None
        assert status.progress.total == 1  # nobody wants the others any more
        assert "step_cancelled" in await kinds_of(handle, "unseen")
        assert "step_cancelled" in await kinds_of(handle, "waits")


async def test_what_a_workflow_cancels_and_goes_on_without_is_told_with_its_attempt(app: App) -> None:
    @app.step
    async def slow() -> None:
        await asyncio.sleep(60)

    @app.workflow
    async def impatient() -> str:
        try:
            async with asyncio.timeout(0.01):
                await slow()
        except TimeoutError:
            await sleep("10ms")
        return "without"

    async with app.rooms():
        handle = await app.start(impatient, id="o")
        assert await ends(handle) == "without"
        [step] = (await handle.status()).steps
        assert (step.key, step.state) == ("slow", "cancelled")
        assert [(one.number, one.cause) for one in step.attempts] == [(1, Cause.CANCELLED)]
        assert await kinds_of(handle, "slow") == ["step_started", "step_cancelled"]


async def test_what_fails_as_its_run_wants_it_no_more_is_told_with_its_error(app: App) -> None:
    @app.step
    async def odd(n: int) -> int:
        if n % 2:
            raise ValueError(f"odd {n}")
        return n

    @app.workflow
    async def first() -> int:
        return await spread(odd, [1, 2, 3], need="any")

    async with app.rooms():
        handle = await app.start(first, id="o")
        assert await ends(handle) == 2
        steps = (await handle.status()).steps
        assert [(step.key, step.state) for step in steps][:2] == [("odd", "cancelled"), ("odd.2", "completed")]
        assert [(one.number, one.error) for one in steps[0].attempts] == [(1, "ValueError: odd 1")]
        assert steps[2].state == "cancelled"
        assert await kinds_of(handle, "odd") == ["step_started", "step_failed", "step_cancelled"]


async def test_what_may_have_taken_effect_when_its_run_ended_has_failed_for_an_unknown_cause(app: App) -> None:
    @app.step(idempotent=False)
    async def pay() -> None:
        raise Ambiguous("the line is dead")

    @app.workflow
    async def order() -> None:
        await pay()

    async with app.rooms():
        handle = await app.start(order, id="o")
        await becomes(handle, lambda status: status.health == "waiting_for_person")
        await handle.cancel("never mind")
        await becomes(handle, lambda status: status.state == "cancelled")
        step = (await steps_of(handle))["pay"]
        assert (step.state, [one.cause for one in step.attempts]) == ("failed", [Cause.UNKNOWN])


# --- probes and people make no attempts


async def test_a_probe_is_no_attempt(app: App) -> None:
    asked: list[int] = []

    async def has_it(order: str) -> Done | NotDone:
        asked.append(attempt().number)
        return NotDone() if len(asked) == 1 else Done(f"R-{order}")

    @app.step(idempotent=False, probe=has_it, retry=Retry(3, backoff="1ms"))
    async def capture(order: str) -> str:
        raise OSError("reset")

    @app.workflow
    async def order() -> str:
        return await capture("o")

    async with app.rooms():
        handle = await app.start(order, id="o")
        assert await ends(handle) == "R-o"
        [step] = (await handle.status()).steps
        assert (step.state, asked) == ("completed", [1, 2])
        assert [(one.number, one.error) for one in step.attempts] == [(1, "OSError: reset"), (2, "OSError: reset")]
        timeline = [event for event in await handle.timeline() if event.step == "capture"]
        kinds = [event.kind for event in timeline]
        assert [kind for kind in kinds if kind.startswith(("step_", "probe_", "probed"))] == [
            *("step_started", "step_failed", "probe_started", "probed"),
            *("step_started", "step_failed", "probe_started", "probed"),
        ]
        said = [(event.attempt, event.note) for event in timeline if event.kind == "probed"]
        assert said == [(1, "not done: it took no effect"), (2, "done: it took effect, and this came of it")]


async def test_an_error_of_a_probe_is_not_the_step_s(app: App) -> None:
    async def broken(order: str) -> Done:
        raise TypeError("it takes nothing")

    async def gives_up(order: str) -> NotDone:
        return NotDone()

    async def cannot_tell(order: str) -> Unknown:
        return Unknown("the bank is closed")

    @app.step(idempotent=False, probe=broken)
    async def pay(order: str) -> str:
        raise OSError("reset")

    @app.step(idempotent=False, probe=gives_up, retry=0)
    async def try_once(order: str) -> str:
        raise OSError("reset")

    @app.step(idempotent=False, probe=cannot_tell)
    async def doubtful(order: str) -> str:
        raise OSError("reset")

    @app.workflow
    async def pays() -> None:
        await pay("o")

    @app.workflow
    async def tries() -> None:
        await try_once("o")

    @app.workflow
    async def doubts() -> None:
        await doubtful("o")

    async with app.rooms():
        tried = await app.start(tries, id="t")
        with pytest.raises(RunFailed, match="OSError: reset"):
            await ends(tried)
        assert "NotDone" not in str(await tried.explain())
        doubted = await app.start(doubts, id="d")
        await becomes(doubted, lambda status: status.health == "waiting_for_person")
        probed = [event.note for event in await doubted.timeline() if event.kind == "probed"]
        assert probed == ["unknown: it cannot say whether it took effect"]
        asked = await app.start(pays, id="p")
        async with asyncio.timeout(LONG):
            while not (probed := [event.note for event in await asked.timeline() if event.kind == "probed"]):
                await asyncio.sleep(LOOK_EVERY)
        assert probed == ["it failed: TypeError: it takes nothing"]
        said = await asked.explain()
        assert "Call 'pay' failed once with OSError: reset. It may have taken effect; its probe failed once" in str(
            said
        )
        for handle in (tried, doubted, asked):
            [step] = (await handle.status()).steps
            assert [(one.number, one.error) for one in step.attempts] == [(1, "OSError: reset")]


@pytest.mark.parametrize(("action", "kind"), [("provide", "provided"), ("skip", "skipped")])
async def test_what_a_person_gives_is_no_attempt(app: App, action: str, kind: str) -> None:
    @app.step(retry=0, then=[Escalate("team")])
    async def charge() -> str | None:
        raise ConnectionError("no")

    @app.workflow
    async def order() -> str | None:
        return await charge()

    async with app.rooms():
        handle = await app.start(order, id="o")
        await becomes(handle, lambda status: status.health == "waiting_for_person")
        [item] = await app.inbox()
        value: dict[str, Any] = {"value": "in cash"} if action == "provide" else {}
        await app.resolve(item.id, action, by="ada", reason="it is late", **value)
        await ends(handle)
        [step] = (await handle.status()).steps
        assert (step.state, [one.number for one in step.attempts]) == ("completed", [1])
        events = [event for event in await handle.timeline() if event.step == "charge"]
        assert (events[-1].kind, events[-1].actor, events[-1].attempt) == (kind, "ada", 0)
        assert "step_completed" not in [event.kind for event in events]
