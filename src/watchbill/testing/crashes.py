"""Crashes: a workflow whose process dies right before and right after each transaction, once at each."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from watchbill.app.app import App
from watchbill.app.report import status_of
from watchbill.app.status import RunStatus, StepStatus
from watchbill.clock import Micros
from watchbill.errors import InvalidOptionError, WatchbillError
from watchbill.flow.workflows import Workflow
from watchbill.model.call import JournalEntry, Kind
from watchbill.model.states import AttemptState, RunState
from watchbill.testing.bodies import Bodies
from watchbill.testing.changes import AttemptSeen, Change, Changes, EntrySeen, LeaseSeen, RunSeen
from watchbill.testing.elsewhere import Elsewhere
from watchbill.testing.patient import PatientLoop
from watchbill.testing.trial import Died, Trial
from watchbill.testing.virtual import Life

T = TypeVar("T")

RUN_ID = "crash-everywhere"


class CrashedRun(msgspec.Struct, frozen=True):
    """What a check may look at, beside the result."""

    status: RunStatus
    journal: tuple[JournalEntry, ...]
    ran: Counter[str]  # how often the body of each step began, in both processes, by the step's name
    ran_calls: Counter[str]  # the same by the call's key: `charge`, `charge.2`
    crash: str | None  # where the first process died; None when it did not

    @property
    def id(self) -> str:
        """The run's id."""
        return self.status.id

    @property
    def steps(self) -> tuple[StepStatus, ...]:
        """The calls of steps, in the order in which they began."""
        return self.status.steps


Check = Callable[[T, CrashedRun], object]


class CrashError(WatchbillError, AssertionError):
    """A workflow did not survive a crash as its test expects it to."""

    def __init__(self, workflow: str, point: int, points: int, crash: str | None, why: str) -> None:
        self.workflow = workflow
        self.point = point
        self.crash = crash
        if crash is None:
            super().__init__(f"workflow {workflow!r}, without any crash: {why}")
        else:
            super().__init__(
                f"workflow {workflow!r}, crash point {point} of {points} ({crash}): {why}\n"
                f"only this one again: watch.crash_everywhere({workflow}, ..., only={point})"
            )


class Point(NamedTuple):
    """A moment at which a process dies."""

    job: int  # of its store, from 1
    after: bool  # or before
    words: str


class Counting:
    """Counts what the store is asked to do, tells which of it wrote something, and lets the process die at one."""

    def __init__(self, point: Point | None) -> None:
        self.points: list[Point] = []
        self._point = point
        self._life: Life | None = None
        self._changes: Changes | None = None
        self._memory: sqlite3.Connection
        self._jobs = 0
        self._written = 0

    def opened(self, memory: sqlite3.Connection, life: Life) -> None:
        """Count what the first process does; the second must not die."""
        if self._changes is None:
            self._memory, self._life = memory, life
            self._changes = Changes(memory)
            self._written = memory.total_changes
        else:
            self._life = None

    def before(self) -> bool:
        """Count one; False when the process has died right before it."""
        if self._life is None or self._life.dead:
            return True  # of the next process
        self._jobs += 1
        self._die_at(after=False)
        return not self._life.dead

    def after(self) -> None:
        """Note what it has written, if anything."""
        if self._life is None or self._life.dead or self._changes is None:
            return
        if self._memory.total_changes != self._written:
            self._written = self._memory.total_changes
            words = f"transaction {len(self.points) // 2 + 1}, which {_in_words(self._changes.take())}"
            self.points.append(Point(self._jobs, False, f"right before {words}"))
            self.points.append(Point(self._jobs, True, f"right after {words}"))
        self._die_at(after=True)

    def _die_at(self, *, after: bool) -> None:
        if self._point is not None and self._life is not None and self._point[:2] == (self._jobs, after):
            self._life.die()


def crash_everywhere(  # noqa: PLR0913 - what the fixture's method of that name takes
    app: App,
    workflow: Workflow[..., T],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    check: Check[T] | None,
    *,
    skew: Micros,
    replays: bool,
    elsewhere: Elsewhere | None,
    only: int | None,
    fresh: Callable[[], object] | None,
    died: Callable[[], object] | None,
) -> int:
    """Run straight, to count the transactions; then once for each of them and each side of it. Gives how many."""
    with ExitStack() as burials:
        world = World(app, workflow, args, kwargs, skew, replays, elsewhere, fresh, died, burials)
        result, run, points = world.play(None)
        _check(check, result, run, partial(CrashError, workflow.name, 0, 0, None))
        if only is not None and not 1 <= only <= len(points):
            raise InvalidOptionError(f"only={only!r}: this workflow has crash points 1 to {len(points)}")
        for number, point in enumerate(points, start=1):
            if only is None or only == number:
                failure = partial(CrashError, workflow.name, number, len(points), point.words)
                try:
                    result, run, _ = world.play(point)
                except Exception as error:
                    why = f"after it the run does not end as it does without: {type(error).__name__}: {error}"
                    raise failure(why) from error
                _check(check, result, run, failure)
    return len(points)


class World(NamedTuple):
    """What is the same for every crash point."""

    app: App
    workflow: Workflow[..., Any]
    args: Sequence[Any]
    kwargs: dict[str, Any]
    skew: Micros
    replays: bool
    elsewhere: Elsewhere | None
    fresh: Callable[[], object] | None
    died: Callable[[], object] | None
    burials: ExitStack

    def play(self, point: Point | None) -> tuple[Any, CrashedRun, list[Point]]:
        """Begin with an empty store, die at that point, start again, and come to the end."""
        if self.fresh is not None:
            self.fresh()
        counting, loop = Counting(point), PatientLoop()
        # The same run each time: elsewhere, once is enough.
        elsewhere = self.elsewhere if point is None else None
        trial = Trial(self.app, loop, self.skew, elsewhere=elsewhere, tally=counting)
        trial.replays = self.replays
        for last in (loop.close, loop.bury_all, trial.bury):
            self.burials.callback(last)
        with Bodies(self.app.registry) as bodies:
            try:
                result, crash = self._run(trial, point)
                points = counting.points[:]
                loop.settle()
                trial.find_differences()
                record = trial.record(RUN_ID)
            finally:
                trial.end()
        return result, CrashedRun(status_of(record), record.journal, bodies.steps, bodies.calls, crash), points

    def _run(self, trial: Trial, point: Point | None) -> tuple[Any, str | None]:
        trial.start_process()
        with suppress(Died):
            return trial.run(self.workflow, self.args, self.kwargs, RUN_ID), None
        if self.died is not None:
            self.died()
        trial.start_process()
        result = trial.run(self.workflow, self.args, self.kwargs, RUN_ID)
        return result, None if point is None else point.words


def _check(check: Check[T] | None, result: T, run: CrashedRun, failure: Callable[[str], CrashError]) -> None:
    if check is None:
        return
    try:
        passed = check(result, run)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # pytest.fail() raises no Exception
        raise failure(f"the check raised {type(error).__name__}: {error}; {_ran(run)}") from error
    if passed is False:
        raise failure(f"the check returned False for {result!r}; {_ran(run)}")


def _ran(run: CrashedRun) -> str:
    return "bodies that began: " + (", ".join(f"{name} {times}" for name, times in run.ran.items()) or "none")


def _in_words(changes: Sequence[Change]) -> str:
    """Say what a transaction did, as far as it concerns runs."""
    said: dict[str, None] = {}
    for change in changes:
        match change:
            case EntrySeen(kind=kind, key=key):
                said["ends the run" if kind == Kind.END else f"records {key!r}" if key else "records a cancel"] = None
            case AttemptSeen(call=call, state=state):
                said[f"marks {call!r} as {AttemptState(state).name.lower()}"] = None
            case RunSeen(status=status):
                said[f"marks the run as {RunState(status).word}"] = None
            case LeaseSeen():
                said["takes the shards"] = None
    return ", ".join(said) or "is the rooms' own"
