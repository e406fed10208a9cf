"""The public API as a state machine: whatever is asked in whatever order, runs are as a small model says.

Hypothesis draws the orders, the deaths of the process and the jumps of time. In virtual time the process dies without a
word; on a file and on PostgreSQL the components are closed and served again, in real time.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.facts import report
from tests.store.postgres import emptied
from watchbill import (
    App,
    DuplicateRun,
    Permanent,
    RunCancelled,
    RunEnded,
    RunFailed,
    WatchbillError,
    ask,
    receive,
    sleep,
)
from watchbill.store.migrate import new_store
from watchbill.testing.patient import PatientLoop
from watchbill.testing.trial import Trial
from watchbill.testing.virtual import Life, rest

T = TypeVar("T")

EXAMPLES = int(os.environ.get("WATCHBILL_EXAMPLES", "0"))  # in virtual time; 0: few, always the same ones
STEPS = 30
pytestmark = pytest.mark.timeout(7_200 if EXAMPLES else 600)
HOUR = 3_600
LONGER = 1  # seconds that a sleep may last beyond its end
PATIENCE = 120.0  # seconds that a slow machine may take
ENDED = ("completed", "failed", "undone", "undo_failed", "cancelled")
LIVE = ("scheduled", "running", "waiting", "undoing")


# --- what runs


def program(app: App) -> dict[str, Any]:
    """Give an App its workflows."""

    @app.step
    async def add(n: int) -> int:
        return n + 1

    @app.step
    async def refuse(n: int) -> int:
        raise Permanent(f"no {n}")

    @app.workflow
    async def talk(n: int) -> list[int]:
        first = await add(n)
        return [first, await add(await receive("word", int))]

    @app.workflow
    async def nap(n: int) -> list[int]:
        first = await add(n)
        await sleep(HOUR)
        return [first]

    @app.workflow
    async def vote(n: int) -> list[int]:
        return [n, int(await ask("go on?", form=bool))]

    @app.workflow
    async def broken(n: int) -> list[int]:
        return [await refuse(n)]

    return {"talk": talk, "nap": nap, "vote": vote, "broken": broken}


# --- where it runs


class World(Protocol):
    """One App on one store, whose process ends and starts again."""

    app: App
    workflows: dict[str, Any]
    jumps: bool  # time can jump

    def do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T: ...

    def restart(self) -> None: ...

    def jump(self, seconds: float) -> None: ...

    def settle(self, settled: Callable[[], Awaitable[bool]]) -> None: ...

    def close(self) -> None: ...


class VirtualWorld:
    """Memory and virtual time: a restart is the death of the process, in the middle of whatever it does."""

    jumps = True

    def __init__(self) -> None:
        self.app = App()
        self.workflows = program(self.app)
        self._loop = PatientLoop()
        self._life = Life("test", self._loop)
        self._trial = Trial(self.app, self._loop, 0)
        self._trial.start_process()

    def do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._trial.do("the test", work)

    def restart(self) -> None:
        self._trial._processes[-1].leave()
        self._trial.start_process()

    def jump(self, seconds: float) -> None:
        self._loop.play(self._life, rest(seconds))

    def settle(self, settled: Callable[[], Awaitable[bool]]) -> None:
        self._loop.settle()

    def close(self) -> None:
        self._trial.end()
        self._trial.bury()
        self._loop.bury_all()
        self._loop.close()


class RealWorld:
    """A store that outlives its process, and real time: a restart closes the components and serves them again."""

    jumps = False

    def __init__(self, url: str) -> None:
        self.url = url
        self._runner = asyncio.Runner()
        self._open()

    def _open(self) -> None:
        self.app = App(self.url)
        self.workflows = program(self.app)
        self._served = AsyncExitStack()
        self._runner.run(self._served.enter_async_context(self.app.rooms()))

    def do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return self._runner.run(work())

    def restart(self) -> None:
        self._end()
        self._open()

    def jump(self, seconds: float) -> None:
        raise NotImplementedError

    def settle(self, settled: Callable[[], Awaitable[bool]]) -> None:
        async def wait() -> None:
            with suppress(TimeoutError):  # then the invariant says what is wrong
                async with asyncio.timeout(PATIENCE):
                    while not await settled():
                        await asyncio.sleep(0.01)

        self._runner.run(wait())

    def _end(self) -> None:
        async def end() -> None:
            await self._served.aclose()
            await self.app.close()

        self._runner.run(end())

    def close(self) -> None:
        self._end()
        self._runner.close()


# --- the model


@dataclass
class Model:
    """A run as it must be once nothing moves without time, a message or an answer."""

    kind: str
    n: int
    words: list[int] = field(default_factory=list)
    answer: bool | None = None
    slept: float = 0.0
    paused: bool = False
    cancelled: bool = False
    returned: bool = False  # before it was cancelled: its pause had kept it from completing
    copy: bool = False  # of another run: what it still has to do depends on what that had done
    ended: tuple[str, Any] | None = None  # as it was seen: this never changes

    @property
    def result(self) -> list[int] | None:
        """What it gives, if nothing keeps it from going on."""
        match self.kind:
            case "talk" if self.words:
                return [self.n + 1, self.words[0] + 1]
            case "nap" if self.slept >= HOUR:
                return [self.n + 1]
            case "vote" if self.answer is not None:
                return [self.n, int(self.answer)]
        return None

    @property
    def allowed(self) -> tuple[str, ...]:
        """The states in which it may be."""
        if self.ended is not None:
            return (self.ended[0],)
        if self.copy:
            return (*LIVE, *ENDED)
        if self.cancelled:
            return ("cancelled", "completed") if self.returned else ("cancelled",)
        ready = ("failed",) if self.kind == "broken" else ("completed",) if self.result is not None else ()
        # A store that is opened again may be ahead of the clock for a moment, and waits: docs/design/clocks.md.
        may_wait = self.kind == "nap" and self.slept < HOUR + LONGER
        return (*LIVE, *ready) if self.paused or may_wait else ready or LIVE


class Machine(RuleBasedStateMachine):
    """All that a client can ask for."""

    make: ClassVar[Callable[[], World]] = VirtualWorld
    acts: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.world = type(self).make()
        self.runs: dict[str, Model] = {}
        self.sent = 0

    def teardown(self) -> None:
        self.world.close()

    # --- help

    def handle(self, id: str) -> Any:
        return self.world.app.handle(id, self.world.workflows[self.runs[id].kind])

    def pick(self, place: int) -> str:
        return list(self.runs)[place % len(self.runs)]

    def tell(self, id: str, act: Callable[[Any], Coroutine[Any, Any, Any]]) -> bool:
        """Ask a run for something; a run that has ended refuses it."""
        try:
            self.world.do(lambda: act(self.handle(id)))
        except RunEnded:
            model = self.runs[id]
            assert model.ended is not None or model.copy or set(model.allowed) & set(ENDED)
            return False
        return self.runs[id].ended is None

    def settle(self) -> None:
        async def settled() -> bool:
            for id, model in self.runs.items():
                state = (await self.handle(id).status()).state
                if state not in model.allowed:
                    return False
                if not model.paused and state in ("scheduled", "running"):
                    return False  # on its way to what it waits for
            return True

        self.world.settle(settled)
        type(self).acts += 1

    # --- rules

    @initialize(kind=st.sampled_from(["talk", "nap", "vote", "broken"]), n=st.integers(0, 3))
    def begin(self, kind: str, n: int) -> None:
        self.start(kind, n, None)

    @rule(
        kind=st.sampled_from(["talk", "nap", "vote", "broken"]),
        n=st.integers(0, 1),
        id=st.none() | st.sampled_from(["a", "b", "c"]),
    )
    def start(self, kind: str, n: int, id: str | None) -> None:
        known = self.runs.get(id) if id is not None else None
        workflow = self.world.workflows[kind]
        if known is not None and (known.kind, known.n) != (kind, n):
            with pytest.raises(DuplicateRun):
                self.world.do(lambda: self.world.app.start(workflow, n, id=id))
        else:
            handle = self.world.do(lambda: self.world.app.start(workflow, n, id=id))
            assert id in (None, handle.id)
            self.runs.setdefault(handle.id, Model(kind, n))
        self.settle()

    @rule(
        ids=st.lists(st.sampled_from(["a", "b", "d", "e", "f"]), min_size=1, max_size=3, unique=True),
        n=st.integers(0, 1),
    )
    def start_many(self, ids: list[str], n: int) -> None:
        asked = [(self.world.workflows["talk"], (n,), {"id": id}) for id in ids]
        known = [self.runs[id] for id in ids if id in self.runs]
        if any((model.kind, model.n) != ("talk", n) for model in known):
            with pytest.raises(DuplicateRun):
                self.world.do(lambda: self.world.app.start_many(asked))
        else:
            handles = self.world.do(lambda: self.world.app.start_many(asked))
            assert [handle.id for handle in handles] == ids
            for id in ids:
                self.runs.setdefault(id, Model("talk", n))
        self.settle()

    @rule(place=st.integers(0, 20), word=st.integers(0, 9), twice=st.booleans())
    def send(self, place: int, word: int, twice: bool) -> None:
        id = self.pick(place)
        self.sent += 1
        ref = f"m{self.sent}"
        if self.tell(id, lambda handle: handle.send("word", word, id=ref)):
            self.runs[id].words.append(word)
            if twice:
                self.tell(id, lambda handle: handle.send("word", word, id=ref))
        self.settle()

    @rule(place=st.integers(0, 20))
    def cancel(self, place: int) -> None:
        id = self.pick(place)
        if self.tell(id, lambda handle: handle.cancel("enough")):
            model = self.runs[id]
            model.cancelled, model.returned = True, model.paused and model.result is not None
        self.settle()

    @rule(place=st.integers(0, 20))
    def pause(self, place: int) -> None:
        id = self.pick(place)
        if self.tell(id, lambda handle: handle.pause("later")):
            self.runs[id].paused = True
        self.settle()

    @rule(place=st.integers(0, 20))
    def resume(self, place: int) -> None:
        id = self.pick(place)
        if self.tell(id, lambda handle: handle.resume()):
            self.runs[id].paused = False
        self.settle()

    @rule(place=st.integers(0, 20), value=st.booleans())
    def answer(self, place: int, value: bool) -> None:
        items = self.world.do(lambda: self.world.app.inbox())
        questions = [item for item in items if item.run in self.runs and self.runs[item.run].kind == "vote"]
        if questions:
            item = questions[place % len(questions)]
            self.world.do(lambda: self.world.app.answer(item.id, value, by="ada"))
            model = self.runs[item.run]
            assert model.answer is None or model.copy, "what was answered is asked no more"
            model.answer = value
        self.settle()

    @rule(place=st.integers(0, 20), how=st.sampled_from(["retry", "rewind", "fork"]))
    def go_on(self, place: int, how: str) -> None:
        """Make a new run of one that has ended; the old one stays as it is."""
        id = self.pick(place)
        model = self.runs[id]
        if model.ended is None:
            return
        act = {
            "retry": lambda handle: handle.retry(reason="again"),
            "rewind": lambda handle: handle.rewind("add"),
            "fork": lambda handle: handle.fork("add"),
        }[how]
        try:
            made = self.world.do(lambda: act(self.handle(id)))
        except WatchbillError:
            pass  # it has no such call, or nothing to try again: then nothing happens
        else:
            assert made.id != id
            self.runs.setdefault(made.id, Model(model.kind, model.n, copy=True))
        self.settle()

    @precondition(lambda self: self.world.jumps)
    @rule(seconds=st.sampled_from([1, HOUR // 2, HOUR]))
    def jump(self, seconds: int) -> None:
        for model in self.runs.values():
            model.slept += seconds
        self.world.jump(seconds)
        self.settle()

    @rule()
    def restart(self) -> None:
        self.world.restart()
        self.settle()

    # --- what always holds

    @invariant()
    def runs_are_as_the_model_says(self) -> None:
        if not self.runs:
            return
        self.world.do(self._check)

    async def _check(self) -> None:
        assert {handle.id async for handle in self.world.app.runs()} == set(self.runs)
        turn = self.pick(type(self).acts)
        assert str(await self.handle(turn).explain())
        for id, model in self.runs.items():
            if model.ended is not None and id != turn:
                continue  # one of those that have ended is looked at each time
            state = (await self.handle(id).status()).state
            assert state in model.allowed, f"{id} is {state}, not {model.allowed}: {model}"
            if state in ENDED:
                result = await self._result(id)
                if model.ended is None and not model.copy and state == "completed":
                    assert result == model.result
                assert model.ended in (None, (state, result)), "what has ended has changed"
                model.ended = (state, result)

    async def _result(self, id: str) -> Any:
        try:
            return await self.handle(id).result(timeout=PATIENCE)
        except (RunFailed, RunCancelled) as error:
            return type(error).__name__


def play(machine: type[Machine], examples: int, steps: int, name: str, *, drawn: bool) -> None:
    """Let Hypothesis play a machine, and leave a line for `make soak`."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=not drawn,
            database=None,
            deadline=None,
            print_blob=drawn,
            suppress_health_check=list(HealthCheck),
        ),
    )
    report(f"state machine on {name}: {examples} examples, {machine.acts} acts of clients, the model was always right")


def test_runs_are_as_the_model_says_in_virtual_time() -> None:
    play(type("Virtual", (Machine,), {"acts": 0}), EXAMPLES or 60, STEPS, "memory", drawn=bool(EXAMPLES))


def test_runs_are_as_the_model_says_on_a_file(folder: Path) -> None:
    made = 0

    def make() -> World:
        nonlocal made
        made += 1
        place = folder / str(made)
        place.mkdir()
        if made > 1:
            shutil.rmtree(folder / str(made - 1))
        (place / "store.db").write_bytes(new_store())
        return RealWorld(f"sqlite:///{place}/store.db")

    machine = type("OnFile", (Machine,), {"acts": 0, "make": staticmethod(make)})
    play(machine, EXAMPLES // 50 or 4, 12, "a file", drawn=bool(EXAMPLES))


def test_runs_are_as_the_model_says_on_postgres(postgres_url: str) -> None:
    def make() -> World:
        asyncio.run(emptied(postgres_url))
        return RealWorld(postgres_url)

    machine = type("OnPostgres", (Machine,), {"acts": 0, "make": staticmethod(make)})
    play(machine, EXAMPLES // 100 or 3, 12, "PostgreSQL", drawn=bool(EXAMPLES))
