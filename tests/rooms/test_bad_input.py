"""Bad values, ids and code: each error says what, which one and what to do, and nothing is lost."""

import asyncio
import contextlib
import logging
import math
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rooms.scene import Ear, becomes, ends
from watchbill import (
    App,
    ImpureWorkflowError,
    InvalidOptionError,
    InvalidValueError,
    Permanent,
    Retry,
    RunCancelled,
    RunFailed,
    RunHeld,
    RunNotFound,
    StepFailed,
    attempt,
    sleep,
)

MB = 2**20


async def failed(app: App, workflow: Any, *args: object) -> RunFailed:
    async with app.rooms():
        with pytest.raises(RunFailed) as caught:
            await ends(await app.start(workflow, *args))
    return caught.value


# --- values


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (math.nan, "is nan: JSON has no NaN and no infinity, use None or a text instead"),
        ([1.0, {"x": math.inf}], r"at \[1\]\['x'\] it is inf: JSON has no NaN and no infinity"),
        ("a\ud800b", "lone surrogate .* pass it as bytes"),
        (object(), "is of type object, which cannot be written as JSON: use built-in types"),
        ({(1, 2): 3}, r"has the key \(1, 2\): keys must be"),
    ],
)
async def test_values_that_cannot_be_stored(kept: str, value: object, says: str) -> None:
    app = App(kept)
    inside: list[str] = []

    @app.step(retry=5)
    async def gives() -> Any:
        inside.append("gives")
        return value

    @app.step
    async def takes(value: Any) -> None:
        inside.append("takes")

    @app.workflow
    async def result_of_a_step() -> None:
        await gives()

    @app.workflow
    async def argument_of_a_step() -> None:
        await takes(value)

    @app.workflow
    async def argument(value: Any) -> None: ...

    @app.workflow
    async def result() -> Any:
        return value

    async with app.rooms():
        with pytest.raises(
            InvalidValueError, match=f"argument 'value' of workflow 'argument' cannot be stored: .*{says}"
        ):
            await app.start(argument, value, id="never")
        with pytest.raises(RunNotFound):
            await app.handle("never").status()
        for workflow, what in (
            (result_of_a_step, "the result of step 'gives'"),
            (argument_of_a_step, "argument 'value' of step 'takes'"),
            (result, "the result of workflow 'result'"),
        ):
            with pytest.raises(RunFailed, match=f"InvalidValueError: {what} cannot be stored: .*{says}"):
                await ends(await app.start(workflow))
    assert inside == ["gives"]  # a result that cannot be stored is not tried again


async def test_values_of_the_wrong_type(app: App) -> None:
    @app.step(retry=5)
    async def gives() -> int:
        return "five"  # type: ignore[return-value]

    @app.step
    async def takes(n: int) -> None: ...

    @app.workflow
    async def result_of_a_step() -> int:
        return await gives()

    @app.workflow
    async def argument_of_a_step() -> None:
        await takes("five")  # type: ignore[arg-type]

    @app.workflow
    async def missing_argument() -> None:
        await takes()  # type: ignore[call-arg]

    @app.workflow
    async def argument(n: int) -> int:
        return n

    @app.workflow
    async def result() -> int:
        return "five"  # type: ignore[return-value]

    async with app.rooms():
        with pytest.raises(
            InvalidValueError, match="argument 'n' of workflow 'argument' must be int: Expected int, got str"
        ):
            await app.start(argument, "five")
        with pytest.raises(TypeError, match=r"workflow 'argument' cannot be called like that: missing .*'n'"):
            await app.start(argument)
        with pytest.raises(TypeError, match=r"workflow 'argument' cannot be called like that: .*'m'"):
            await app.start(argument, 1, m=2)
        for workflow, says in (
            (result_of_a_step, "step 'gives' must return int, returned str"),
            (argument_of_a_step, "argument 'n' of step 'takes' must be int"),
            (missing_argument, "step 'takes' cannot be called like that: missing .*'n'"),
            (result, "workflow 'result' must return int, returned str"),
        ):
            with pytest.raises(RunFailed, match=says) as caught:
                await ends(await app.start(workflow))
            assert caught.value.attempts in (None, 0, 1)
        assert await ends(await app.start(argument, 5)) == 5


async def test_a_type_error_inside_a_step_is_tried_again_but_one_of_the_call_is_not(app: App) -> None:
    @app.step(retry=Retry(1, backoff="1ms"))
    async def inside() -> None:
        len(None)  # type: ignore[arg-type]

    @app.workflow
    async def wf() -> int:
        try:
            await inside()
        except StepFailed as error:
            return error.attempts
        raise AssertionError

    async with app.rooms():
        assert await ends(await app.start(wf)) == 2


async def test_a_bad_checkpoint_is_a_failure_of_the_step_that_says_so(app: App) -> None:
    @app.step(retry=3)
    async def work() -> None:
        await attempt().checkpoint(math.nan)

    @app.workflow
    async def wf() -> None:
        await work()

    error = await failed(app, wf)
    assert "the checkpoint of step 'work' cannot be stored: it is nan" in str(error)
    assert error.attempts == 1


@pytest.mark.parametrize("done", [math.nan, math.inf, "half", None, 10**400])
async def test_progress_that_is_no_number_is_refused_in_the_step(kept: str, done: Any) -> None:
    app = App(kept)

    @app.step(retry=0)
    async def work() -> None:
        attempt().progress(done)

    @app.workflow
    async def wf() -> None:
        await work()

    error = await failed(app, wf)
    assert error.error.type == "InvalidValueError"
    assert "progress of step 'work' is counted in finite numbers" in error.error.message


async def test_an_odd_note_is_shown_as_far_as_it_can_be(app: App) -> None:
    release = asyncio.Event()

    @app.step
    async def work() -> None:
        attempt().progress(1, total=2, note="a\ud800b" + "x" * 100_000)
        await release.wait()

    @app.workflow
    async def wf() -> None:
        await work()

    async with app.rooms():
        handle = await app.start(wf)
        status = await becomes(handle, lambda status: status.steps and status.steps[0].progress)
        progress = status.steps[0].progress
        assert progress is not None
        assert progress.note.startswith("a?bxxx")
        assert len(progress.note) <= 1_000
        release.set()
        await ends(handle)


async def test_values_above_256_kb_go_to_blobs_and_come_back(app: App) -> None:
    big = "x" * 300_000

    @app.step
    async def grow(text: str) -> str:
        return text + "y"

    @app.step(retry=Retry(1, backoff="1ms"))
    def again(text: str) -> str:
        if attempt().number == 1:
            attempt().checkpoint(text)
            raise ConnectionError
        assert attempt().restored == text
        return text + "z"

    @app.workflow
    async def wf(text: str) -> str:
        return await again(await grow(text))

    async with app.rooms():
        handle = await app.start(wf, big, id="big")
        assert await ends(handle) == big + "yz"
        same = await app.start(wf, big, id="big")
        assert await ends(same) == big + "yz"
    async with app.rooms():
        assert await app.handle("big").result() == big + "yz"


async def test_a_result_of_100_mb_is_kept_and_one_byte_more_is_refused(kept: str) -> None:
    app = App(kept)
    largest = 100 * MB - 2  # the quotes are part of it

    @app.step(retry=5)
    def gives(size: int) -> str:
        return "x" * size

    @app.workflow
    async def wf(size: int) -> int:
        return len(await gives(size))

    async with app.rooms():
        assert await ends(await app.start(wf, largest)) == largest
        with pytest.raises(RunFailed) as caught:
            await ends(await app.start(wf, largest + 1))
        assert "the result of step 'gives' cannot be stored: 104,857,601 bytes of JSON" in str(caught.value)
        assert "put it into a file or bucket, and pass its address" in str(caught.value)
        assert caught.value.attempts == 1


class Unspeakable(Exception):
    def __init__(self, a: object, b: object, c: object) -> None:
        self.a = object()

    def __str__(self) -> str:
        raise RuntimeError("not even this")

    def __reduce__(self) -> Any:
        raise RuntimeError("nor that")


async def test_exceptions_that_cannot_be_rebuilt_are_told_as_data(app: App) -> None:
    @app.step(retry=0)
    def bad() -> None:
        raise Unspeakable(1, 2, 3)

    @app.step(retry=0)
    def worse() -> None:
        raise ValueError("a\ud800b" + "x" * 100_000)

    @app.step(retry=0)
    async def group() -> None:
        raise ExceptionGroup("both", [ValueError("one"), Unspeakable(1, 2, 3)])

    @app.workflow
    async def wf() -> list[tuple[str, str, int]]:
        told = []
        for call in (bad, worse, group):
            try:
                await call()
            except StepFailed as error:
                told.append((error.type, error.message[:60], len(error.message)))
        return told

    @app.workflow
    async def raises() -> None:
        raise Unspeakable(1, 2, 3)

    async with app.rooms():
        first, second, third = await ends(await app.start(wf))
        assert first[0].endswith(".Unspeakable")
        assert first[1] == "(it cannot be shown: its __str__ raised RuntimeError)"
        assert second[0] == "ValueError"
        assert second[1].startswith("a?bxxx")
        assert second[2] < 20_000
        assert third[0] == "ExceptionGroup"
        with pytest.raises(RunFailed, match="Unspeakable") as caught:
            await ends(await app.start(raises))
        assert "raise Unspeakable" in caught.value.error.traceback


async def test_a_step_that_wants_to_end_the_process_only_fails(app: App) -> None:
    @app.step(retry=0)
    async def leaves() -> None:
        raise SystemExit(3)

    @app.step(retry=0)
    def leaves_thread() -> None:
        raise SystemExit(3)

    @app.workflow
    async def wf() -> list[str]:
        told = []
        for call in (leaves, leaves_thread):
            try:
                await call()
            except StepFailed as error:
                told.append(error.type)
        return told

    async with app.rooms():
        assert await ends(await app.start(wf)) == ["SystemExit", "SystemExit"]


# --- ids


@pytest.mark.parametrize("id", ["", "a" * 201, "a b", "a/b", "a~2", "a@b", "ä", "a\n", 5, b"a", "a\x00", "\ud800"])
async def test_odd_ids_are_refused(kept: str, id: Any) -> None:
    app = App(kept)

    @app.workflow
    async def wf() -> int:
        return 1

    async with app.rooms():
        with pytest.raises(InvalidOptionError, match="a run id has 1-200 characters of A-Z a-z 0-9"):
            await app.start(wf, id=id)
        assert await ends(await app.start(wf, id="a" * 200)) == 1
        assert await ends(await app.start(wf, id="A.b_c:d-9")) == 1


async def test_a_handle_on_an_odd_id_finds_nothing(app: App) -> None:
    async with app.rooms():
        for id in ("", "a b", "ä" * 300, "a\x00b"):
            with pytest.raises(RunNotFound):
                await app.handle(id).status()


# --- code


async def test_a_forgotten_await_is_told_and_the_run_goes_on(
    app: App, ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    @app.step
    async def charge() -> None: ...

    @app.workflow
    async def forgetful() -> str:
        charge()  # type: ignore[unused-coroutine]
        await charge()
        return "done"

    with caplog.at_level(logging.WARNING, "watchbill"):
        async with app.rooms():
            assert await ends(await app.start(forgetful, id="f")) == "done"
    [event] = ear.of("run.warned", "f")
    assert "never awaited" in event.note
    assert "run.warned f" in caplog.text


async def returns_a_coroutine() -> int:
    return 1


async def test_a_coroutine_as_an_argument_asks_for_the_await(app: App) -> None:
    @app.step
    async def takes(value: Any) -> None: ...

    @app.workflow
    async def wf() -> None:
        coroutine = returns_a_coroutine()
        try:
            await takes(coroutine)
        finally:
            coroutine.close()

    assert "was an await forgotten?" in str(await failed(app, wf))


def blocking() -> None: ...


@pytest.mark.parametrize(
    ("reach", "call"),
    [
        (lambda: asyncio.get_running_loop().run_in_executor(None, blocking), "run_in_executor"),
        (lambda: asyncio.get_running_loop().getaddrinfo("localhost", 80), "getaddrinfo"),
        (lambda: asyncio.get_running_loop().subprocess_exec(asyncio.SubprocessProtocol, "true"), "subprocess_exec"),
        (lambda: asyncio.get_running_loop().create_connection(asyncio.Protocol, "localhost", 1), "create_connection"),
    ],
)
async def test_what_the_loop_of_a_workflow_cannot_do_says_put_it_in_a_step(
    kept: str, reach: Callable[[], Any], call: str
) -> None:
    app = App(kept)

    @app.workflow
    async def wf() -> None:
        with contextlib.suppress(Exception):  # swallowing it does not help
            await reach()

    error = await failed(app, wf)
    assert error.error.type == "NotInWorkflowError"
    assert call in error.error.message
    assert "put it in a step" in error.error.message


async def test_the_scan_finds_clocks_chance_and_io_before_the_first_start(app: App) -> None:
    @app.workflow
    async def reads_the_clock() -> float:
        return time.time()

    @app.workflow
    async def opens_a_file() -> str:
        with open("/etc/hosts") as file:
            return file.read()

    @app.workflow
    async def connects() -> None:
        socket.create_connection(("localhost", 1))

    @app.workflow(allow=["time.time"])
    async def may_read_the_clock() -> bool:
        return time.time() > 0

    async with app.rooms():
        impure: list[tuple[Any, str]] = [
            (reads_the_clock, "time.time"),
            (opens_a_file, "open"),
            (connects, "socket.create_connection"),
        ]
        for workflow, what in impure:
            with pytest.raises(ImpureWorkflowError) as caught:
                await app.start(workflow, id="never")
            [finding] = caught.value.findings
            assert caught.value.workflow == workflow.name
            assert f"{Path(__file__).name}:" in finding
            assert what in finding
            assert "put it in a step" in finding
        with pytest.raises(RunNotFound):
            await app.handle("never").status()
        assert await ends(await app.start(may_read_the_clock)) is True


async def test_a_workflow_that_never_rests_is_held_and_the_others_go_on(file: str) -> None:
    app = App(file)  # one kind of store is enough: it spins for five seconds, and none of them sees it
    ear = Ear(app)

    @app.workflow
    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    @app.workflow
    async def fine() -> int:
        return 1

    async with app.rooms():
        await app.start(spins, id="s")
        [event] = await ear.hears("run.held", "s")
        assert "never rests" in event.note
        assert await ends(await app.start(fine)) == 1
        await app.handle("s").cancel("stop it")
        with pytest.raises(RunCancelled, match="stop it"):
            await ends(app.handle("s"))


def test_a_step_that_no_child_can_find_is_held_and_says_where_to_put_it(kept: str) -> None:
    app = App(kept)

    @app.step(isolation="own")
    def hidden() -> None: ...

    @app.workflow
    async def wf() -> None:
        await hidden()

    with pytest.raises(RunHeld, match=r"step 'hidden' cannot run in a process of its own.*at module level"):
        app.run(wf, id="r")


# --- options


def test_wrong_options_are_refused_where_they_are_written() -> None:
    app = App("sqlite:///:memory:")
    options: dict[str, Any]
    for options, says in (
        ({"timeot": "1s"}, "timeot.*did you mean 'timeout'"),
        ({"retries": 3}, "retries.*did you mean 'retry'"),
        ({"isolation": "owm"}, "must be 'auto' or 'own', got 'owm'.*did you mean 'own'"),
        ({"timeout": "1 hour"}, "timeout of step 'step' must look like '1h30m'"),
        ({"timeout": 0}, "timeout of step 'step' must be above zero"),
        ({"retry": "3"}, "retry of step 'step' must be a number or Retry"),
        ({"retry": -1}, r"Retry\(times\) must be a whole number from 0"),
        ({"probe": "x"}, "probe of step 'step' must be a function"),
    ):
        with pytest.raises(InvalidOptionError, match=says):

            @app.step(**options)
            def step() -> None: ...

    for options, says in (
        ({"alow": []}, "alow.*did you mean 'allow'"),
        ({"allow": ["time.tim"]}, "did you mean 'time.time'"),
        ({"region": "e u"}, "region of workflow 'workflow' is a name"),
    ):
        with pytest.raises(InvalidOptionError, match=says):

            @app.workflow(**options)
            async def workflow() -> None: ...

    @app.step(name="twin")
    def one() -> None: ...

    with pytest.raises(InvalidOptionError, match=r"step 'twin' .* has that name in this App; give one of them name="):

        @app.step(name="twin")
        def other() -> None: ...

    with pytest.raises(InvalidOptionError, match=r"parameter 'id', but app\.start has one too"):

        @app.workflow
        async def clash(id: str) -> None: ...


async def test_start_takes_only_workflows_of_its_own_app(app: App) -> None:
    other = App("sqlite:///:memory:")

    @other.workflow
    async def foreign() -> None: ...

    @app.step
    async def step() -> None: ...

    @app.workflow
    async def wf() -> None: ...

    async with app.rooms():
        with pytest.raises(InvalidOptionError, match="workflow 'foreign' belongs to another App"):
            await app.start(foreign)
        with pytest.raises(InvalidOptionError, match="start\\(\\) takes a workflow"):
            await app.start(step)  # type: ignore[arg-type]
        with pytest.raises(InvalidOptionError, match="region of start"):
            await app.start(wf, region="e u")


async def test_call_options_are_checked_too(app: App) -> None:
    @app.step
    async def step() -> None: ...

    with pytest.raises(InvalidOptionError, match="did you mean 'timeout'"):
        step.options(timout="1s")  # type: ignore[call-arg]
    with pytest.raises(InvalidOptionError, match="key of step 'step' must be text of 1-200 characters"):
        step.options(key="k" * 201)

    @app.workflow
    async def wf() -> None:
        await step.options(key="same")()
        await step.options(key="same")()

    assert "key 'same' was used before in this run: give each call a key of its own" in str(await failed(app, wf))


# --- code that changed


class Versions:
    """One store, and the same workflow in several versions of its code."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.ran: list[str] = []
        self.told: list[str] = []
        self.packs = False

    def app(self, first: str = "charge", *, extra: int = 0, result: Any = int) -> tuple[App, Any]:
        """Give code in which the workflow calls `first` and then `pack`."""
        app = App(self.url)
        app.events.subscribe(lambda events: self.told.extend(event.kind for event in events))

        async def one(n: int) -> Any:
            self.ran.append(f"{first} {n}")
            return n

        one.__annotations__["return"] = result
        step = app.step(name=first)(one)

        @app.step
        async def pack(n: int) -> int:
            self.ran.append(f"pack {n}")
            if not self.packs:
                await asyncio.Event().wait()
            return n

        @app.workflow
        async def order(n: int) -> int:
            done = await step(n + extra)
            return int(done + await pack(n))

        return app, order


def left_behind(versions: Versions) -> None:
    """Leave a run behind that has one step in its journal and waits in the next."""

    async def begin() -> None:
        app, order = versions.app()
        async with app.rooms():
            handle = await app.start(order, 1, id="o")
            await becomes(handle, lambda status: [step.state for step in status.steps][:1] == ["completed"])

    asyncio.run(begin())


@pytest.mark.parametrize(
    ("change", "recorded", "asked"),
    [
        ({"first": "bill"}, "'charge'", "'bill'"),
        ({"extra": 1}, "'charge' with other arguments", "'charge' with [2]"),
        ({"result": list[str]}, "'charge' that cannot be read", "what 'charge' returns now"),
    ],
)
def test_code_that_no_longer_fits_diverges_and_goes_on_when_it_fits_again(
    kept: str, change: dict[str, Any], recorded: str, asked: str
) -> None:
    versions = Versions(kept)
    left_behind(versions)
    versions.packs = True
    for _ in range(2):  # however often it is tried
        app, order = versions.app(**change)
        with pytest.raises(RunHeld) as held:
            app.run(order, 1, id="o")
        assert held.value.id == "o"
        before, between, after = held.value.reason.partition(", the code asks for ")
        assert between
        assert recorded in before
        assert asked in after
        status = app.sync.handle("o").status()
        assert (status.state, status.health, status.held) == ("diverged", "waiting_for_person", held.value.reason)
    assert versions.told.count("run.diverged") == 2  # once in each process
    app, order = versions.app()
    assert app.run(order, 1, id="o") == 2
    assert [ran for ran in versions.ran if not ran.startswith("pack")] == ["charge 1"]


def test_a_diverged_run_holds_up_nobody_and_can_be_cancelled(kept: str) -> None:
    versions = Versions(kept)
    left_behind(versions)
    versions.packs = True
    app, order = versions.app("bill")
    assert app.run(order, 5) == 10
    app.sync.handle("o").cancel("start over")
    with pytest.raises(RunCancelled, match="start over"):
        app.run(order, 1, id="o")


async def test_a_sleeping_run_is_cancelled_although_its_code_is_gone(kept: str) -> None:
    def app_with(name: str) -> tuple[App, Any]:
        app = App(kept)

        @app.step(name=name)
        async def step() -> None: ...

        @app.workflow
        async def nap() -> None:
            await step()
            await sleep("30d")

        return app, nap

    first, nap = app_with("before")
    handle = await first.start(nap, id="n")
    async with first.rooms():
        await becomes(handle, lambda status: status.state == "waiting")
    second, _ = app_with("after")
    async with second.rooms():
        await second.handle("n").cancel("enough")
        with pytest.raises(RunCancelled, match="enough"):
            await ends(second.handle("n"))


def test_arguments_that_the_code_no_longer_takes_diverge_and_fit_again(kept: str) -> None:
    def app_with(kind: Any) -> tuple[App, Any]:
        app = App(kept)

        async def order(n: Any) -> float:
            loop = asyncio.get_running_loop()
            began = loop.time()
            await sleep("10ms")
            return loop.time() - began

        order.__annotations__["n"] = kind
        return app, app.workflow(order)

    app, order = app_with(str)
    app.sync.start(order, "five", id="o")
    other, _ = app_with(int)

    async def open_rooms() -> None:
        ear = Ear(other)
        async with other.rooms():
            [event] = await ear.hears("run.diverged", "o")
            assert '["five"]' in event.note
            assert "argument 'n' of workflow 'order' must be int" in event.note
            assert (await other.handle("o").status()).state == "diverged"

    asyncio.run(open_rooms())
    assert app.run(order, "five", id="o") >= 0.01


async def test_a_step_without_code_waits_for_it(kept: str) -> None:
    first, second = App(kept), App(kept)
    numbers: list[int] = []

    @first.step(name="flaky", retry=Retry(2, backoff="1ms"))
    async def flaky() -> int:
        numbers.append(attempt().number)
        raise Permanent("gone")

    @first.workflow
    async def order() -> int:
        return await flaky()

    @second.workflow(name="unrelated")
    async def unrelated() -> int:
        return 1

    handle = await first.start(order, id="o")
    async with first.rooms(agent=False):
        await becomes(handle, lambda status: status.steps)
    async with second.rooms():
        assert await ends(await second.start(unrelated)) == 1
        assert (await second.handle("o").status()).steps[0].state == "ready"
    async with first.rooms():
        with pytest.raises(RunFailed, match="gone"):
            await ends(handle)
    assert numbers == [1]
