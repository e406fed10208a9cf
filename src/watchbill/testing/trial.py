"""Trial: a user's App on a store in memory, in virtual time. Its process can die, and be started again.

The rooms, the store and the user's code are the real ones. A death is the end of every callback of the process, in the
middle of whatever it does and without any `finally`; what it had committed is there for the next one.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from watchbill import events as happened
from watchbill.app.app import App
from watchbill.app.hall import Hall
from watchbill.app.handle import Handle
from watchbill.clock import Clock, Micros
from watchbill.env import Done, Job, Threads
from watchbill.errors import WatchbillError
from watchbill.events import Event
from watchbill.flow.divergence import Diverged
from watchbill.flow.logs import marked_records
from watchbill.flow.parts import current_part
from watchbill.flow.recheck import recheck
from watchbill.flow.workflows import Workflow
from watchbill.model.outgoing import Outgoing
from watchbill.model.question import InboxItem
from watchbill.model.run import RunRow
from watchbill.model.states import RunState
from watchbill.store.open import MEMORY, connect_memory, open_store
from watchbill.store.protocol import EVERY, ClientStore, Record, Store
from watchbill.testing.chance import Chance
from watchbill.testing.elsewhere import Elsewhere
from watchbill.testing.envs import Ids, SimClock, SimEnv, StoreThreads
from watchbill.testing.patient import Crew, PatientLoop
from watchbill.testing.posted import PostBox
from watchbill.testing.unanswered import unanswered
from watchbill.testing.virtual import Life, VirtualLoop, rest

T = TypeVar("T")

ENDS: Final = frozenset(
    {
        happened.RUN_COMPLETED,
        happened.RUN_FAILED,
        happened.RUN_CANCELLED,
        happened.RUN_UNDONE,
        happened.RUN_UNDO_FAILED,
    }
)
LONGEST: Final = 20 * 365 * 86_400  # virtual seconds after which a run that has not ended never will
LAST_LOOK: Final = LONGEST - 1  # at what it waits for


class ReplayError(WatchbillError, AssertionError):
    """A run that has ended does something else when it is replayed: after a crash it would be held as diverged."""

    def __init__(self, run: str, workflow: str, difference: Diverged, where: str = "") -> None:
        self.run = run
        self.workflow = workflow
        self.recorded = difference.recorded
        self.asked = difference.asked
        super().__init__(
            f"workflow {workflow!r} cannot be replayed: run {run!r} has ended, and run again from its journal{where} it"
            f" does something else: {difference}. A workflow may depend on its"
            " arguments and on what it awaits alone: not on the order of a set, a module's state, a clock or chance"
        )


class NeverEndsError(WatchbillError, AssertionError):
    """Nothing that is still to come will end what the test waits for."""


class UnansweredError(NeverEndsError):
    """A run waits for a person, and the test waits for the run."""

    def __init__(self, run: str, item: InboxItem) -> None:
        self.run = run
        self.item = item
        asks = item.kind == "question"
        what = f"the answer to question {item.question!r}" if asks else f"a decision, because {item.question}"
        whose = f" of run {item.run!r}" if item.run != run else ""
        how = "answer with `watch.answer(item, value)`" if asks else "decide with `watch.resolve(item, action)`"
        super().__init__(
            f"run {run!r} waits for {what}{whose}, and nothing else ends it: start it with `run = watch.start(...)`,"
            f" find the item in `watch.inbox()`, {how}, then call `run.result()`"
        )


class Died(Exception):
    """The process of a trial died before it had done what it was asked for."""


class Tally(Protocol):
    """Who hears of everything that the store of a trial is asked to do."""

    def opened(self, memory: sqlite3.Connection, life: Life) -> None:
        """Hear that a process has opened the store: from now on it counts."""
        ...

    def before(self) -> bool:
        """Hear that something is about to be done; False when the process has died of it."""
        ...

    def after(self) -> None:
        """Hear that it is done."""
        ...


class Trial:
    """One App, one store, one process after the other."""

    def __init__(  # noqa: PLR0913 - a world is made in one place
        self,
        app: App,
        loop: PatientLoop,
        skew: Micros,
        *,
        elsewhere: Elsewhere | None = None,
        tally: Tally | None = None,
        ids: Ids | None = None,
        box: PostBox | None = None,
    ) -> None:
        self.app = app
        self.replays = True  # each run that has ended
        self._elsewhere = elsewhere
        self._loop = loop
        self._clock = SimClock(loop, skew=skew)
        self._ids = Ids(loop) if ids is None else ids
        self._box = PostBox() if box is None else box
        self._tally = tally
        self._memory = connect_memory()
        self._processes: list[Process] = []
        self._ended: list[str] = []  # runs that are to be replayed
        self._deaf = app.events.listen(self._hear)

    def start_process(self) -> None:
        """Start a process: it opens the store, and the rooms."""
        number = len(self._processes) + 1
        env = TrialEnv(self._loop, self._clock, Chance(number), self._ids, self._box)
        store_env = StoreEnv(self._loop, self._clock, Chance(0), self._ids, self._tally)
        process = Process(f"process-{number}", self.app, self._memory, env, store_env)
        self._processes.append(process)
        self._loop.play(process.life, process.hall.open())
        if self._tally is not None:
            self._tally.opened(self._memory, process.life)

    def do(self, what: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Have the process run a coroutine to its end, whatever time that takes. Raises Died."""
        process = self._processes[-1]
        done: list[T] = []

        async def limited() -> None:
            limit = asyncio.timeout(LONGEST)
            try:
                async with limit:
                    done.append(await work())
            except TimeoutError:
                if limit.expired():
                    raise NeverEndsError(
                        f"{what} has not ended after {LONGEST // 86_400 // 365} years of virtual time: what it waits"
                        " for will not come; start it with `watch.start(...)`, whose status() says what that is"
                    ) from None
                raise

        self._loop.play(process.life, limited())
        if not done:
            process.leave()
            raise Died
        return done[0]

    def run(self, workflow: Workflow[..., T], args: Sequence[Any], kwargs: dict[str, Any], id: str | None) -> T:
        """Do what `app.run` does: start a run, or find it, and wait for its end."""
        hall = self._processes[-1].hall

        async def to_its_end() -> T:
            handle = await self.app.start(workflow, *args, id=id, **kwargs)
            return await hall.end_of(handle, held_too=True)

        return self.do(f"a run of {workflow.name!r}", to_its_end)

    def result(self, handle: Handle[T]) -> T:
        """Wait for the end of a run."""
        hall = self._processes[-1].hall
        return self.do(f"run {handle.id!r}", lambda: hall.end_of(handle))

    def record(self, id: str) -> Record:
        """Read all that is stored about a run."""
        return self.do("reading", lambda: self._processes[-1].hall.record(id))

    def find_differences(self) -> None:
        """Replay the runs that have ended since the last time; raises ReplayError."""
        ended, self._ended = self._ended, []
        for id in ended if self.replays else ():
            record = self.record(id)
            run, part = record.run, current_part(record.run, record.journal)
            workflow = self.app.registry.find(part.workflow, part.version)
            if run.begun_at is None or workflow is None:
                continue  # it was cancelled before
            difference = recheck(workflow, run, record.journal)
            if difference is not None:
                raise ReplayError(id, workflow.name, difference)
            if self._elsewhere is not None:
                difference = self._elsewhere.recheck(workflow, run, record.journal)
                if difference is not None:
                    raise ReplayError(id, workflow.name, difference, " in a process with another PYTHONHASHSEED")

    def end(self) -> None:
        """Let the process die, for good."""
        self._processes[-1].leave()
        self._deaf()

    def bury(self) -> None:
        """Close what the dead left behind: only now do their `finally` blocks run, when nobody looks any more."""
        for process in self._processes:
            process.hall.abandon()
        self._memory.close()

    def _hear(self, events: Sequence[Event]) -> None:
        if self._loop.is_running():  # else it is told in another world of the same App
            self._ended.extend(event.run for event in events if event.kind in ENDS)


class Process:
    """One process of a trial, from its start to its death."""

    def __init__(self, name: str, app: App, memory: sqlite3.Connection, env: "TrialEnv", store_env: "StoreEnv") -> None:
        self.hall = TrialHall(app, memory, env, store_env)
        self.life = Life(name, env.loop)
        self.life.on_death(env.loop.stop)
        self._leaving = ExitStack()
        self._leaving.enter_context(marked_records())
        for last in (app.meet_in(self.hall), self.hall.hear_no_more):
            self._leaving.callback(last)

    def leave(self) -> None:
        """Be dead, and let nobody wait for it."""
        self.life.die()
        self._leaving.close()


class TrialHall(Hall):
    """The hall of one process of a trial: its store is in memory, and outlives it."""

    def __init__(self, app: App, memory: sqlite3.Connection, env: "TrialEnv", store_env: "StoreEnv") -> None:
        super().__init__(
            MEMORY,
            app.namespace,
            app.registry,
            app.events,
            env,
            retention=app.retention,
            keys=app.keys,
            routes=app.routes,
        )
        self._memory = memory
        self._store_env = store_env

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the rooms, on which nothing happens while the test itself does something."""
        if self._loop is not None and not self._loop.is_running():
            raise WatchbillError(
                "this App is in a test that uses `watch`: call watch.run() or watch.start(), not the App itself"
            )
        return self._loop

    @loop.setter
    def loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop

    async def open(self) -> None:
        """Open the rooms, until the process dies."""
        self.loop = asyncio.get_running_loop()
        house, _ = self._build(await self._kept())
        await house.start()

    async def close(self) -> None:
        """Do nothing: the store is the test's."""

    async def end_of(self, handle: Handle[T], *, held_too: bool = False) -> T:
        """Give the result of a run; raises UnansweredError if it waits for a person, and for nothing else."""
        result = asyncio.ensure_future(self.result(handle, None, held_too=held_too))
        watching = asyncio.ensure_future(self._until_unanswered(handle.id))
        try:
            await asyncio.wait((result, watching), return_when=asyncio.FIRST_COMPLETED)
            if not result.done():
                watching.result()
            return await result
        finally:
            result.cancel()
            watching.cancel()

    async def _until_unanswered(self, run: str) -> None:
        """Look twice as late each time: so the test waits at most twice as long as it has to."""
        passed = 0.0
        while passed < LAST_LOOK:
            span = min(max(passed, 1), LAST_LOOK - passed)
            await rest(span)
            passed += span
            if inbox := await self.inbox():
                live = await self.read(partial(_live, self.namespace))
                item = unanswered(run, live, inbox, certain=passed < LAST_LOOK)
                if item is not None:
                    raise UnansweredError(run, item)

    async def record(self, id: str, *, earlier: bool = False) -> Record:
        """Read all that is stored about a run."""
        async with self._reading() as client:
            record = await client.record(self.namespace, id, earlier=earlier)
        assert record is not None  # noqa: S101 - somebody has heard of it
        return record

    def hear_no_more(self) -> None:
        """Hear no events any more."""
        self._stop_listening()

    def abandon(self) -> None:
        """Forget what the rooms have in memory, and let go of threads that wait for them."""
        for room in self._house.rooms if self._house is not None else ():
            room.abandon()

    async def _open(self) -> Store:
        return await open_store(self.url, self._store_env, memory=self._memory)


async def _live(namespace: str, doors: ClientStore) -> list[RunRow]:
    states = tuple(state for state in RunState if not state.terminal)
    return await doors.runs(namespace, statuses=states, workflow=None, tags=(), before=None, limit=EVERY)


class TrialEnv(SimEnv):
    """The world of one process under test: virtual time, real threads, and posts that never leave the test."""

    def __init__(self, loop: PatientLoop, clock: Clock, chance: Chance, ids: Ids, box: PostBox) -> None:
        super().__init__(loop, clock, chance, ids)
        self._patient = loop
        self._box = box

    def threads(self, name: str, count: int) -> Threads:
        """Make a pool of real threads."""
        return Crew(self._patient, name, count)

    def post(self, outgoing: Outgoing) -> int:
        """Record a webhook or an alert."""
        return self._box.take(outgoing, self.clock.wall())

    def _child_env(self) -> "TrialEnv":
        return TrialEnv(self._patient, self.clock, self._chance, self._ids, self._box)


class StoreEnv(SimEnv):
    """The world of a process's store: what it is asked to do takes no time, and is told to whoever counts it."""

    def __init__(self, loop: PatientLoop, clock: Clock, chance: Chance, ids: Ids, tally: Tally | None) -> None:
        super().__init__(loop, clock, chance, ids)
        self._tally = tally

    def threads(self, name: str, count: int) -> Threads:
        """Make the threads of the store."""
        return StoreThreads(self.loop, lambda: None) if self._tally is None else TalliedThreads(self.loop, self._tally)


class TalliedThreads(StoreThreads):
    """Threads of a store whose process can die before or after each thing it does."""

    def __init__(self, loop: VirtualLoop, tally: Tally) -> None:
        super().__init__(loop, tally.after)
        self._tally = tally

    def submit(self, job: Job[T], done: Done[T]) -> None:
        """Run the job now, unless the process dies before."""
        if self._tally.before():
            super().submit(job, done)
