"""Late and stalled: what runs into its limits, what may take longer, and what is quiet on purpose."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.rooms.scene import LONG, Ear, becomes, ends
from watchbill import App, InvalidOptionError, InvalidValueError, Permanent, Retry, RunFailed, attempt
from watchbill.model.agent import Act, Report, Room
from watchbill.model.failure import Cause, Failure
from watchbill.model.policy import Policy
from watchbill.testing.watch import Watch

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Worker:
    """An App in virtual time, whose step does as it is told; what it saw is kept."""

    def __init__(self) -> None:
        self.app = App("sqlite:////nowhere/at/all.db")
        self.seen: list[Any] = []


@pytest.fixture
def worker() -> Worker:
    return Worker()


# --- stalled


async def test_what_stands_still_is_found_and_tried_again_from_its_checkpoint(app: App, ear: Ear) -> None:
    begun: list[Any] = []

    @app.step(stall="100ms", retry=Retry(1, backoff="1ms"))
    async def encode() -> str:
        begun.append(attempt().restored)
        if attempt().number == 1:
            attempt().progress(47, total=100)
            await attempt().checkpoint(47)
            await asyncio.Event().wait()
        return f"from {attempt().restored}"

    @app.workflow
    async def wf() -> str:
        return await encode()

    async with app.rooms():
        handle = await app.start(wf, id="r")
        assert await ends(handle) == "from 47"
        status, events = await handle.status(), await handle.timeline()
    assert begun == [None, 47]
    [told] = ear.of("step.stalled", "r")
    assert (told.cause, told.step, told.attempt) == ("stalled", "encode", 1)
    assert "at 47 of 100 since" in told.note
    [step] = status.steps
    assert [one.cause for one in step.attempts] == ["stalled", None]
    assert str(step.attempts[0].error).startswith("Stalled: no progress for ")
    assert ear.of("step.lost") == []
    assert [(event.kind, event.attempt) for event in events if event.cause == "stalled"] == [("step_failed", 1)]


async def test_a_call_that_always_stalls_fails_with_that_cause(app: App) -> None:
    @app.step(stall="50ms", retry=0)
    async def stuck() -> None:
        await asyncio.Event().wait()

    @app.workflow
    async def wf() -> None:
        await stuck()

    async with app.rooms():
        with pytest.raises(RunFailed) as failed:
            await ends(await app.start(wf))
    assert (failed.value.error.type, failed.value.cause) == ("Stalled", "stalled")


def test_slow_but_moving_is_never_stalled(watch: Watch, worker: Worker) -> None:
    @worker.app.step(stall="30s", timeout="10d")
    async def encode() -> int:
        for chunk in range(200):
            attempt().progress(chunk + 1, total=200)
            await asyncio.sleep(29.9)
        return attempt().number

    @worker.app.workflow
    async def wf() -> int:
        return await encode()

    assert watch.run(wf) == 1


def test_a_changed_note_is_no_progress(watch: Watch, worker: Worker) -> None:
    @worker.app.step(stall="30s", retry=0)
    async def chatty() -> None:
        for n in range(1_000):
            attempt().progress(1, note=f"still at it: {n}")
            await asyncio.sleep(1)

    @worker.app.workflow
    async def wf() -> None:
        await chatty()

    watch.at(NOON)
    with pytest.raises(RunFailed) as failed:
        watch.run(wf)
    assert failed.value.cause == "stalled"
    assert timedelta(seconds=30) <= watch.now - NOON <= timedelta(seconds=32)


@pytest.mark.parametrize("call", ["31s", 31, timedelta(seconds=31)])
def test_a_call_may_have_a_stall_of_its_own(watch: Watch, worker: Worker, call: Any) -> None:
    @worker.app.step(stall="1h", retry=0)
    async def stuck() -> None:
        await asyncio.Event().wait()

    @worker.app.workflow
    async def wf() -> None:
        await stuck.options(stall=call)()

    watch.at(NOON)
    with pytest.raises(RunFailed):
        watch.run(wf)
    assert timedelta(seconds=31) <= watch.now - NOON <= timedelta(seconds=33)


def test_without_a_stall_nobody_is_found_for_being_quiet_but_nobody_runs_for_ever(watch: Watch, worker: Worker) -> None:
    @worker.app.step(retry=0)
    async def stuck() -> None:
        await asyncio.Event().wait()

    @worker.app.workflow
    async def wf() -> None:
        await stuck()

    watch.at(NOON)
    with pytest.raises(RunFailed) as failed:
        watch.run(wf)
    assert failed.value.cause == "late"
    assert timedelta(hours=1) <= watch.now - NOON <= timedelta(hours=1, seconds=2)


@pytest.mark.parametrize(("limits", "health"), [({"stall": "10ms"}, "stalled"), ({"timeout": "10ms"}, "late")])
async def test_while_nobody_looks_its_health_says_what_is_wrong(app: App, limits: Any, health: str) -> None:
    go = asyncio.Event()

    @app.step(**limits)
    async def stuck() -> None:
        await go.wait()

    @app.workflow
    async def wf() -> None:
        await stuck()

    async with app.rooms(supervisor=False):
        handle = await app.start(wf, id="r")
        await becomes(handle, lambda status: status.health == health)
        assert [run.id async for run in app.runs(health=health)] == ["r"]
        assert "the supervisor will stop it" in str(await handle.explain())
        go.set()
        await ends(handle)


async def test_who_starved_the_others_of_its_process_is_tried_again_in_one_of_its_own(app: App, ear: Ear) -> None:
    @app.step(retry=0)
    async def hog() -> None: ...

    @app.workflow
    async def wf() -> None:
        await hog()

    async with app.rooms(agent=False):
        hall: Any = app._hall
        doors = hall._store.agent
        await doors.join(71, "default", "", "by hand", b"{}", None)
        handle = await app.start(wf, id="r")
        await becomes(handle, lambda status: status.steps)
        [queue] = [queue.id for queue in await doors.queues("default", "")]
        [row] = await doors.lease(71, 1, [queue], Room(slots=1, alone=0, steps=("hog",)))
        failure = msgspec.json.encode(Failure("Starved", "its worker did not turn", cause=Cause.STARVED))
        await doors.report(71, [Report(row.id, row.fence, Act.DIED, failure)])
        await ear.hears("step.retried", "r")
        assert await doors.lease(71, 2, [queue], Room(slots=1, alone=0, steps=("hog",))) == []
        [again] = await doors.lease(71, 3, [queue], Room(slots=1, alone=1, steps=("hog",)))
        assert msgspec.json.decode(again.policy, type=Policy).own
        assert (again.failures, again.losses) == (0, 2)
        await doors.report(71, [Report(again.id, again.fence, Act.DONE, b"null")])
        await ends(handle)
        [step] = (await handle.status()).steps
    assert [one.cause for one in step.attempts] == ["starved", None]


# --- quiet on purpose


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_who_holds_is_not_stalled_and_afterwards_has_its_time_anew(watch: Watch, worker: Worker, kind: str) -> None:
    @worker.app.step(stall="30s")
    async def tape() -> str:
        attempt().progress(1)
        with attempt().hold("the tape is rewound", within="20m"):
            await asyncio.sleep(900)
        await asyncio.sleep(29)
        return f"attempt {attempt().number}"

    @worker.app.step(stall="30s")
    def tape_sync() -> str:
        with attempt().hold("nothing long", within="20m"):
            pass
        return f"attempt {attempt().number}"

    @worker.app.workflow
    async def wf() -> str:
        return await (tape() if kind == "async" else tape_sync())

    assert watch.run(wf) == "attempt 1"


def test_a_hold_is_bounded(watch: Watch, worker: Worker) -> None:
    @worker.app.step(stall="30s", retry=0)
    async def tape() -> None:
        with attempt().hold("the tape", within="10m"):
            await asyncio.Event().wait()

    @worker.app.workflow
    async def wf() -> None:
        await tape()

    watch.at(NOON)
    with pytest.raises(RunFailed, match="in which it was quiet for 'the tape'"):
        watch.run(wf)
    assert timedelta(minutes=10) <= watch.now - NOON <= timedelta(minutes=10, seconds=2)


def test_of_several_holds_the_last_counts(watch: Watch, worker: Worker) -> None:
    @worker.app.step(stall="30s")
    async def both() -> int:
        with attempt().hold("long", within="10m"):
            with attempt().hold("short", within="1s"):
                await asyncio.sleep(60)
            await asyncio.sleep(60)
        return attempt().number

    @worker.app.workflow
    async def wf() -> int:
        return await both()

    assert watch.run(wf) == 1


def test_explain_says_why_it_is_quiet(watch: Watch, worker: Worker) -> None:
    @worker.app.step(stall="30s")
    async def tape() -> None:
        with attempt().hold("the tape", within="10m"):
            await asyncio.sleep(300)

    @worker.app.workflow
    async def wf() -> None:
        await tape()

    run = watch.start(wf)
    watch.jump("2m")
    assert "quiet on purpose (the tape)" in str(run.explain())
    status = run.status()
    assert (status.health, status.steps[0].progress) == ("ok", None)


# --- longer than the timeout


def test_an_extension_moves_the_deadline_of_this_attempt_alone(watch: Watch, worker: Worker) -> None:
    @worker.app.step(timeout="1m", retry=Retry(1, backoff="1s"))
    async def slow() -> int:
        worker.seen.append((attempt().number, attempt().deadline, round(attempt().remaining())))
        if attempt().number == 1:
            attempt().extend("1m")
            attempt().extend(60)
            worker.seen.append((attempt().number, attempt().deadline, round(attempt().remaining())))
            await asyncio.sleep(179)
            raise ConnectionError
        await asyncio.sleep(61)
        return attempt().number

    @worker.app.workflow
    async def wf() -> int:
        return await slow()

    watch.at(NOON)
    with pytest.raises(RunFailed, match="after its timeout of 60 s"):
        watch.run(wf)
    first, extended, second = worker.seen
    assert first == (1, NOON + timedelta(minutes=1), 60)
    assert extended == (1, NOON + timedelta(minutes=3), 180)
    assert second[0::2] == (2, 60)


def test_who_uses_up_what_was_extended_is_late(watch: Watch, worker: Worker) -> None:
    @worker.app.step(timeout="1m", retry=0)
    async def slow() -> None:
        attempt().extend("30s")
        await asyncio.Event().wait()

    @worker.app.workflow
    async def wf() -> None:
        await slow()

    watch.at(NOON)
    with pytest.raises(RunFailed, match="timeout of 60 s, extended by 30 s") as failed:
        watch.run(wf)
    assert failed.value.cause == "late"
    assert timedelta(seconds=90) <= watch.now - NOON <= timedelta(seconds=91)


async def test_extend_and_hold_make_an_attempt_visible(app: App) -> None:
    go = asyncio.Event()

    @app.step(timeout="1h")
    async def extends() -> datetime:
        attempt().extend("1h")
        await go.wait()
        return attempt().deadline

    @app.step(stall="1h")
    async def holds() -> None:
        with attempt().hold("the door", within="1h"):
            await go.wait()

    @app.workflow
    async def wf() -> tuple[datetime, None]:
        return await asyncio.gather(extends(), holds())

    async with app.rooms():
        handle = await app.start(wf)
        await becomes(handle, lambda status: len(status.steps) == 2)
        told = {call["step"]: call for call in (await handle.explain()).facts["calls"]}
        go.set()
        deadline, _ = await ends(handle)
    assert abs(told["extends"]["deadline"] - deadline) < timedelta(seconds=1)
    assert told["holds"]["quiet_for"] == "the door"


@pytest.mark.parametrize("odd", [-1, "soon", None, True])
async def test_odd_spans_are_refused_where_they_are_asked_for(app: App, odd: Any) -> None:
    @app.step(retry=0)
    async def step(which: str) -> None:
        if which == "extend":
            attempt().extend(odd)
        else:
            with attempt().hold("x", within=odd):
                pass

    @app.workflow
    async def wf(which: str) -> None:
        await step(which)

    async with app.rooms():
        for which in ("extend", "hold"):
            with pytest.raises(RunFailed) as failed:
                await ends(await app.start(wf, which))
            assert failed.value.error.type == InvalidOptionError.__name__


async def test_outside_an_attempt_they_do_nothing(app: App, caplog: pytest.LogCaptureFixture) -> None:
    @app.step
    async def step() -> float:
        attempt().extend("1h")
        with attempt().hold("x", within="1s"):
            attempt().log.warning("nobody's attempt")
        assert attempt().deadline > datetime.now(UTC)
        return attempt().remaining()

    assert await step() == float("inf")
    [record] = caplog.records
    assert (record.name, hasattr(record, "watchbill_run")) == ("watchbill.step", False)


# --- tries within an attempt


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_local_retries_are_nobodys_business(app: App, ear: Ear, kind: str) -> None:
    tries: list[tuple[int, list[int]]] = []

    def work(given: list[int]) -> int:
        tries.append((attempt().number, list(given)))
        given.append(0)  # the next try must not see this
        if len(tries) < 4:
            raise ConnectionError
        return len(tries)

    @app.step(local_retries=3, retry=0)
    def flaky_sync(given: list[int]) -> int:
        return work(given)

    @app.step(local_retries=3, retry=0)
    async def flaky(given: list[int]) -> int:
        await asyncio.sleep(0)
        return work(given)

    @app.workflow
    async def wf() -> int:
        return await (flaky([1]) if kind == "async" else flaky_sync([1]))

    async with app.rooms():
        handle = await app.start(wf)
        assert await ends(handle) == 4
        [step] = (await handle.status()).steps
    assert tries == [(1, [1])] * 4
    assert [one.cause for one in step.attempts] == [None]
    assert ear.of("step.failed") == ear.of("step.retried") == []


async def test_when_they_are_used_up_the_supervisor_decides(app: App, ear: Ear) -> None:
    tries: list[int] = []

    @app.step(local_retries=2, retry=Retry(1, backoff="1ms"))
    async def broken() -> None:
        tries.append(attempt().number)
        raise ConnectionError(f"try {len(tries)}")

    @app.workflow
    async def wf() -> None:
        await broken()

    async with app.rooms():
        handle = await app.start(wf, id="r")
        with pytest.raises(RunFailed, match="try 6"):
            await ends(handle)
    assert tries == [1, 1, 1, 2, 2, 2]
    assert len(ear.of("step.retried", "r")) == 1


@pytest.mark.parametrize("error", [Permanent("no"), KeyError("left out"), InvalidValueError("never")])
async def test_what_is_not_to_be_tried_again_is_not_tried_again_here_either(app: App, error: Exception) -> None:
    tries: list[int] = []

    @app.step(local_retries=5, retry=Retry(5, backoff="1ms", never=(KeyError,)))
    async def broken() -> None:
        tries.append(1)
        raise error

    @app.workflow
    async def wf() -> None:
        await broken()

    async with app.rooms():
        with pytest.raises(RunFailed):
            await ends(await app.start(wf))
    assert tries == [1]


async def test_a_cancelled_attempt_is_not_tried_again(app: App) -> None:
    tries, begun = [0], asyncio.Event()

    @app.step(local_retries=5)
    async def endless() -> None:
        tries[0] += 1
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError from None  # it makes its own of it, and is cancelled all the same

    @app.workflow
    async def wf() -> str:
        try:
            async with asyncio.timeout(0.05):
                await endless()
        except TimeoutError:
            return "gave up"
        return "done"

    async with app.rooms():
        handle = await app.start(wf)
        await asyncio.wait_for(begun.wait(), LONG)
        assert await ends(handle) == "gave up"
    assert tries == [1]


def test_local_retries_have_no_more_time_than_their_attempt(watch: Watch, worker: Worker) -> None:
    @worker.app.step(local_retries=100, timeout="1m", retry=0)
    async def slow() -> None:
        worker.seen.append(attempt().remaining())
        await asyncio.sleep(25)
        raise ConnectionError

    @worker.app.workflow
    async def wf() -> None:
        await slow()

    with pytest.raises(RunFailed) as failed:
        watch.run(wf)
    assert [round(left) for left in worker.seen] == [60, 35, 10]
    assert failed.value.cause == "late"


# --- what is logged


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_records_carry_the_ids_of_their_attempt(app: App, caplog: pytest.LogCaptureFixture, kind: str) -> None:
    mine = logging.getLogger("somebody.elses")
    fences: list[int] = []

    def speak() -> None:
        fences.append(attempt().fence)
        mine.warning("by any logger")
        attempt().log.warning("by its own, %s", "with arguments", extra={"mine": 1})

    @app.step
    async def speaks() -> None:
        speak()
        await asyncio.to_thread(lambda: mine.warning("from a thread of its own"))

    @app.step
    def speaks_sync() -> None:
        speak()

    @app.workflow
    async def wf() -> None:
        await (speaks() if kind == "async" else speaks_sync())

    before = logging.getLogRecordFactory()
    async with app.rooms():
        await ends(await app.start(wf, id="r"))
        mine.warning("outside")
    assert logging.getLogRecordFactory() is before
    name = "speaks" if kind == "async" else "speaks_sync"
    records = [record for record in caplog.records if record.name in (mine.name, f"watchbill.step.{name}")]
    assert [record.getMessage() for record in records][:2] == ["by any logger", "by its own, with arguments"]
    for record in records[:-1]:
        ids = {key: value for key, value in vars(record).items() if key.startswith("watchbill_")}
        assert ids == {
            "watchbill_run": "r",
            "watchbill_step": name,
            "watchbill_call": name,
            "watchbill_attempt": 1,
            "watchbill_fence": fences[0],
        }
    assert records[-1].getMessage() == "outside"
    assert not hasattr(records[-1], "watchbill_run")
    assert vars(records[1])["mine"] == 1
    assert records[1].filename == "test_limits.py"


async def test_who_makes_records_another_way_meanwhile_keeps_doing_so(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    before = logging.getLogRecordFactory()

    @app.step
    async def speaks() -> None:
        ours = logging.getLogRecordFactory()
        logging.setLogRecordFactory(lambda *args, **kwargs: ours(*args, **kwargs))
        attempt().log.warning("around it")
        logging.setLogRecordFactory(before)
        attempt().log.warning("in its place")

    @app.workflow
    async def wf() -> None:
        await speaks()

    async with app.rooms():
        await ends(await app.start(wf, id="r"))
    assert logging.getLogRecordFactory() is before
    records = [record for record in caplog.records if record.name == "watchbill.step.speaks"]
    assert [vars(record)["watchbill_run"] for record in records] == ["r", "r"]
