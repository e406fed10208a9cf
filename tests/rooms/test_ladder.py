"""What follows when trying again does not help: another way, a question to the outside world, or a person."""

import asyncio
from typing import Any

import pytest

from tests.rooms.scene import LONG, LOOK_EVERY, Ear, becomes
from watchbill import (
    Ambiguous,
    App,
    Busy,
    Done,
    Escalate,
    InvalidOptionError,
    NotDone,
    Permanent,
    Retry,
    RunFailed,
    RunUndone,
    StepFailed,
    Switch,
    Unknown,
    attempt,
)
from watchbill.model.incident import Incident

SOON = Retry(1, backoff="1ms")


async def an_incident(app: App, *, members: int) -> Incident:
    """Look until there is one with so many members."""
    async with asyncio.timeout(LONG):
        while True:
            for incident in await app.incidents():
                if incident.members == members:
                    return incident
            await asyncio.sleep(LOOK_EVERY)


async def test_after_the_retries_a_switch_tries_other_arguments_with_a_fresh_budget(app: App) -> None:
    tries: list[tuple[str, int, int, str]] = []

    @app.step(retry=SOON, then=[Switch(codec="safe", retry=Retry(2, backoff="1ms")), Switch(codec="slow", loud=True)])
    async def encode(path: str, codec: str = "fast", *, loud: bool = False) -> str:
        here = attempt()
        tries.append((codec, here.number, here.rung, here.key))
        if codec != "slow":
            raise ConnectionError(codec)
        return f"{path}.{codec}.{loud}"

    @app.workflow
    async def release(path: str) -> str:
        return await encode(path)

    async with app.rooms():
        handle = await app.start(release, "a")
        assert await handle.result(timeout=20) == "a.slow.True"
        status = await handle.status()

    assert [codec for codec, *_ in tries] == ["fast", "fast", "safe", "safe", "safe", "slow"]
    assert [number for _, number, _, _ in tries] == [1, 2, 3, 4, 5, 6]
    assert [rung for _, _, rung, _ in tries] == [0, 0, 1, 1, 1, 2]
    assert len({key for *_, key in tries}) == 1
    [step] = status.steps
    assert [(one.number, one.rung) for one in step.attempts] == [(1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (6, 2)]
    assert [event.note for event in await handle.timeline() if event.kind == "switch"] == [
        "its only retry is used up: codec='safe'",
        "all 2 retries are used up: codec='slow', loud=True",
    ]


async def test_what_its_author_leaves_out_of_the_retries_goes_to_the_next_rung_at_once(app: App) -> None:
    tries: list[str] = []

    @app.step(retry=Retry(5, on=(ConnectionError,)), then=[Switch(way="b")])
    async def go(way: str = "a") -> str:
        tries.append(way)
        if way == "a":
            raise ValueError(way)
        return way

    @app.workflow
    async def trip() -> str:
        return await go()

    async with app.rooms():
        assert await (await app.start(trip)).result(timeout=20) == "b"
    assert tries == ["a", "b"]


async def test_permanent_does_not_climb_and_after_the_last_rung_the_call_fails(app: App) -> None:
    tries: list[str] = []

    @app.step(retry=0, then=[Switch(way="b")])
    async def go(kind: str, way: str = "a") -> str:
        tries.append(way)
        raise Permanent("never") if kind == "permanent" else ConnectionError(way)

    @app.workflow
    async def trip(kind: str) -> str:
        try:
            return await go(kind)
        except StepFailed as failed:
            return f"{failed.type} {failed.attempts}"

    async with app.rooms():
        assert await (await app.start(trip, "permanent")).result(timeout=20) == "Permanent 1"
        assert await (await app.start(trip, "other")).result(timeout=20) == "ConnectionError 2"
    assert tries == ["a", "a", "b"]


async def test_a_switch_to_another_step_is_undone_by_what_undoes_that(app: App) -> None:
    did: list[Any] = []

    @app.step
    async def unmake(result: str, size: int, region: str) -> None:
        did.append(("unmake", result, size, region))

    @app.step
    async def unmake_slowly(result: dict[str, str], size: int, region: str) -> None:
        did.append(("unmake slowly", result, size, region))

    @app.step(undo=unmake_slowly)
    async def make_slowly(size: int, region: str) -> dict[str, str]:
        return {"made": f"{size} in {region}"}

    @app.step(retry=0, undo=unmake, then=[Switch(step=make_slowly, region="us")])
    async def make(size: int, region: str = "eu") -> str:
        raise ConnectionError(region)

    @app.workflow
    async def build(size: int) -> None:
        did.append(await make(size))
        raise Permanent("no")

    async with app.rooms():
        with pytest.raises(RunUndone):
            await (await app.start(build, 3)).result(timeout=20)
    made = {"made": "3 in us"}
    assert did == [made, ("unmake slowly", made, 3, "us")]


async def test_a_switch_of_capabilities_waits_for_whoever_has_them(app: App) -> None:
    @app.step(retry=0, then=[Switch(needs="slow", patience=9)])
    async def think(patience: int = 1) -> int:
        if patience == 1:
            raise TimeoutError
        return patience

    @app.workflow
    async def ask_around() -> int:
        return await think()

    async with app.rooms():
        handle = await app.start(ask_around)
        await becomes(handle, lambda status: status.health == "waiting_for_agent")
        assert "no agent for slow" in str(await handle.explain())
    async with app.rooms(needs=("slow",)):
        assert await handle.result(timeout=20) == 9


async def test_who_makes_things_up_is_replaced_by_another_kind_of_agent(app: App) -> None:
    asked: list[str] = []

    def adds_up(answer: str, question: str, model: str) -> bool:
        return answer == str(sum(map(int, question.split("+"))))

    @app.step(retry=Retry(1, backoff="1ms"), verify=adds_up, then=[Switch(needs="careful-model", model="careful")])
    async def answer(question: str, model: str = "fast") -> str:
        asked.append(model)
        return "4" if model == "careful" else "5"

    @app.workflow
    async def research(question: str) -> str:
        return await answer(question)

    async with app.rooms(needs=("careful-model",)):
        handle = await app.start(research, "2+2")
        assert await handle.result(timeout=20) == "4"
        [step] = (await handle.status()).steps
    assert asked == ["fast", "fast", "careful"]
    assert [one.cause for one in step.attempts] == ["rejected", "rejected", None]


async def test_busy_is_tried_again_when_it_says_and_costs_nothing(app: App) -> None:
    tries: list[int] = []

    @app.step(retry=0)
    async def post() -> int:
        tries.append(attempt().number)
        if len(tries) <= 4:
            raise Busy("1ms")
        return len(tries)

    @app.workflow
    async def send() -> int:
        return await post()

    async with app.rooms():
        assert await (await app.start(send)).result(timeout=20) == 5
    assert tries == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("answer", ["done", "not done"])
async def test_what_may_have_taken_effect_is_asked_about_before_it_is_tried_again(app: App, answer: str) -> None:
    said: list[tuple[str, str, int]] = []

    async def was_captured(order: str) -> Done | NotDone | Unknown:
        said.append(("probe", attempt().key, attempt().number))
        return Done(f"{order}: found") if answer == "done" else NotDone()

    @app.step(probe=was_captured, retry=SOON)
    async def capture(order: str) -> str:
        said.append(("capture", attempt().key, attempt().number))
        if len(said) == 1:
            raise Ambiguous("no answer after it was sent")
        return f"{order}: captured"

    @app.workflow
    async def pay(order: str) -> str:
        return await capture(order)

    async with app.rooms():
        handle = await app.start(pay, "o-1")
        result = await handle.result(timeout=20)

    assert len({key for _, key, _ in said}) == 1
    told = [(what, number) for what, _, number in said]
    if answer == "done":
        assert (result, told) == ("o-1: found", [("capture", 1), ("probe", 1)])
    else:
        assert (result, told) == ("o-1: captured", [("capture", 1), ("probe", 1), ("capture", 2)])


async def test_when_nobody_can_tell_a_person_decides_and_nothing_is_tried_blindly(app: App, ear: Ear) -> None:
    tries: list[int] = []

    def ask_bank(order: str) -> Unknown:
        return Unknown("the bank is closed")

    @app.step(probe=ask_bank, then=[Escalate("payments")])
    async def capture(order: str) -> str:
        tries.append(attempt().number)
        if len(tries) == 1:
            raise Ambiguous("no answer")
        return "captured"

    @app.workflow
    async def pay(order: str) -> str:
        return await capture(order)

    async with app.rooms():
        handle = await app.start(pay, "o-1")
        await ear.hears("step.escalated", handle.id)
        status = await handle.status()
        assert (status.state, status.health) == ("waiting", "waiting_for_person")
        assert "Nobody knows" in str(await handle.explain())
        assert "payments" in str(await handle.explain())
        assert tries == [1]
        await handle.retry()
        assert await handle.result(timeout=20) == "captured"
    assert tries == [1, 2]


async def test_what_a_drain_stopped_is_asked_about_before_it_is_tried_again(app: App) -> None:
    said: list[str] = []
    at_work = asyncio.Event()

    async def was_captured(order: str) -> Done | NotDone:
        said.append("probe")
        return NotDone()

    @app.step(idempotent=False, probe=was_captured, retry=0)
    async def capture(order: str) -> str:
        said.append("capture")
        if len(said) == 1:
            at_work.set()
            await asyncio.Event().wait()
        return order

    @app.workflow
    async def pay(order: str) -> str:
        return await capture(order)

    async with app.rooms():
        handle = await app.start(pay, "o-1")
        await asyncio.wait_for(at_work.wait(), 20)
    async with app.rooms():
        assert await handle.result(timeout=20) == "o-1", "it cost no retry"
    assert said == ["capture", "probe", "capture"]


async def test_what_a_drain_stopped_waits_for_a_person_if_nobody_can_be_asked(app: App, ear: Ear) -> None:
    tries: list[str] = []
    at_work = asyncio.Event()

    @app.step(idempotent=False)
    async def charge(order: str) -> str:
        tries.append(order)
        at_work.set()
        await asyncio.Event().wait()
        return order

    @app.workflow
    async def pay(order: str) -> str:
        return await charge(order)

    async with app.rooms():
        handle = await app.start(pay, "o-1")
        await asyncio.wait_for(at_work.wait(), 20)
    async with app.rooms():
        await ear.hears("step.escalated", handle.id)
        assert (await handle.status()).health == "waiting_for_person"
    assert tries == ["o-1"]


async def test_a_step_that_is_not_idempotent_is_retried_only_for_what_its_author_names(app: App, ear: Ear) -> None:
    tries: list[str] = []

    @app.step(idempotent=False, retry=Retry(3, backoff="1ms", on=(ConnectionRefusedError,)))
    async def charge(order: str) -> str:
        tries.append(order)
        if len(tries) == 1:
            raise ConnectionRefusedError
        if order == "odd":
            raise ConnectionResetError
        if order == "bad":
            raise Permanent("no such card")
        return order

    @app.workflow
    async def pay(order: str) -> str:
        return await charge(order)

    async with app.rooms():
        assert await (await app.start(pay, "good")).result(timeout=20) == "good"
        with pytest.raises(RunFailed, match="no such card"):
            await (await app.start(pay, "bad")).result(timeout=20)
        odd = await app.start(pay, "odd")
        await ear.hears("step.escalated", odd.id)
        assert tries == ["good", "good", "bad", "odd"]
        assert (await odd.status()).health == "waiting_for_person"


async def test_an_escalation_holds_the_call_until_somebody_lets_it_go(app: App, ear: Ear) -> None:
    tries: list[int] = []

    @app.step(retry=SOON, then=[Escalate("video-team")])
    def encode(path: str) -> str:
        tries.append(attempt().number)
        if len(tries) < 4:
            raise ConnectionError(path)
        return path

    @app.workflow
    async def release(path: str) -> str:
        return await encode(path)

    async with app.rooms():
        handle = await app.start(release, "a")
        await ear.hears("step.escalated", handle.id)
        assert "'video-team'" in str(await handle.explain())
        await handle.retry()
        assert await handle.result(timeout=20) == "a"
    assert tries == [1, 2, 3, 4]


async def test_who_lets_a_call_go_too_early_is_asked_again(app: App, ear: Ear) -> None:
    mended: list[bool] = []

    @app.step(retry=SOON, then=[Escalate("bank-team")])
    def pay(order: str) -> str:
        if not mended:
            raise ConnectionError("the bank is down")
        return order

    @app.workflow
    async def sale(order: str) -> str:
        return await pay(order)

    async with app.rooms():
        runs = [await app.start(sale, order, id=order) for order in ("a", "b")]
        for again in (1, 2, 3):
            for run in runs:
                await ear.hears("step.escalated", run.id, times=again)
            incident = await an_incident(app, members=2)
            assert incident.group == "bank-team"
            if again == 3:
                mended.append(True)
            await app.resolve(incident.id, "resume", by="ada", reason="it should be back")
        assert [await run.result(timeout=20) for run in runs] == ["a", "b"]


async def test_a_probe_that_keeps_failing_ends_with_a_person(
    app: App, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchbill.supervisor.judge.PROBE_AGAIN", 1_000)
    asked: list[int] = []

    async def ask_bank() -> Done:
        asked.append(attempt().number)
        raise ConnectionError("no line")

    @app.step(probe=ask_bank)
    async def capture() -> str:
        raise Ambiguous("no answer")

    @app.workflow
    async def pay() -> str:
        return await capture()

    async with app.rooms():
        handle = await app.start(pay)
        await ear.hears("step.escalated", handle.id)
    assert asked == [1, 1, 1]


async def test_a_result_that_is_not_accepted_is_a_failure(app: App) -> None:
    tries: list[str] = []

    def is_whole(result: str, path: str, *, codec: str) -> bool:
        return codec == "safe" and result == path

    async def is_loud(result: int) -> None:
        if result < 2:
            raise ValueError("too quiet")

    @app.step(retry=0, verify=is_whole, then=[Switch(codec="safe")])
    def encode(path: str, *, codec: str = "fast") -> str:
        tries.append(codec)
        return path

    @app.step(retry=SOON, verify=is_loud)
    async def shout() -> int:
        return attempt().number

    @app.workflow
    async def release(path: str) -> tuple[str, int]:
        return await encode(path), await shout()

    async with app.rooms():
        handle = await app.start(release, "a")
        assert await handle.result(timeout=20) == ("a", 2)
        causes = [one.cause for step in (await handle.status()).steps for one in step.attempts]
    assert tries == ["fast", "safe"]
    assert causes == ["rejected", None, "rejected", None]


async def test_what_would_not_be_verified_cannot_be_finished(app: App) -> None:
    @app.step(retry=0, verify=lambda result: True)
    async def charge() -> str:
        await attempt().finish("paid", tx=None)
        return "paid"

    @app.workflow
    async def pay() -> str:
        return await charge()

    async with app.rooms():
        with pytest.raises(RunFailed, match="nobody has verified"):
            await (await app.start(pay)).result(timeout=20)


async def test_an_attempt_in_doubt_of_a_run_that_is_stopped_is_asked_about_and_then_undone(app: App, ear: Ear) -> None:
    did: list[Any] = []
    begun = asyncio.Event()

    async def was_made(name: str) -> Done:
        return Done(f"{name}-1")

    @app.step(probe=was_made, idempotent=False)
    async def make(name: str) -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise Ambiguous("cut off while it was sent") from None
        return name

    @make.undo
    async def unmake(result: str | None, name: str) -> None:
        did.append((result, name))

    @app.workflow
    async def build(name: str) -> None:
        await make(name)

    async with app.rooms():
        handle = await app.start(build, "vm")
        await begun.wait()
        await becomes(handle, lambda status: status.steps and status.steps[0].state == "running")
        await handle.cancel("enough")
        await ear.hears("run.cancelled", handle.id)
    assert [name for _, name in did] == ["vm"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda app, step: app.step(then=[Switch(codek="x")])(step), "did you mean 'codec'"),
        (lambda app, step: app.step(then=[Switch(codec=3)])(step), "codec"),
        (lambda app, step: app.step(then=["again"])(step), "Switch"),
        (lambda app, step: app.step(then=[Switch()])(step), "changes nothing"),
        (lambda app, step: app.step(then=[Switch(step=step)])(step), "must be a step"),
        (lambda app, step: app.step(then=[Escalate(" team ")])(step), "Escalate"),
        (lambda app, step: app.step(idempotent="no")(step), "idempotent"),
        (lambda app, step: app.step(probe=3)(step), "probe"),
        (lambda app, step: app.step(verify=3)(step), "verify"),
    ],
)
def test_a_ladder_that_cannot_be_climbed_is_refused_at_import(wrong: Any, said: str) -> None:
    def encode(path: str, codec: str = "fast") -> str:
        return path + codec

    with pytest.raises(InvalidOptionError, match=said):
        wrong(App("sqlite:///:memory:"), encode)
