"""Watch: what the fixture `watch` gives to the tests of users. All of it is synchronous, and takes no real time."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any, TypeVar

from watchbill.app.app import App
from watchbill.app.handle import Handle
from watchbill.app.sync import Bridge
from watchbill.clock import EPOCH, SECOND, Micros, micros, to_datetime
from watchbill.errors import InvalidOptionError, WatchbillError
from watchbill.flow.guard import GUARD
from watchbill.flow.workflows import Workflow
from watchbill.model.duration import Duration, to_micros
from watchbill.testing.crashes import Check, crash_everywhere
from watchbill.testing.elsewhere import Elsewhere
from watchbill.testing.envs import DAWN
from watchbill.testing.patient import PatientLoop
from watchbill.testing.trial import Trial
from watchbill.testing.virtual import Life, rest

T = TypeVar("T")


class Watch:
    """A world for one test: a store in memory for each App, and a clock that jumps.

    A test never touches the store that an App names. Runs go on while the test waits in one of these methods, and each
    returns when everything has happened that can happen without time passing.
    """

    def __init__(self, elsewhere: Elsewhere | None = None) -> None:
        self._elsewhere = elsewhere
        self._guard = ExitStack()
        self._guard.enter_context(GUARD.on())
        self.replays = True  # a run that has ended is run again from its journal, and must do the same again
        self._loop = PatientLoop()
        self._life = Life("test", self._loop)
        self._skew: Micros = 0
        self._trials: dict[App, Trial] = {}

    @property
    def now(self) -> datetime:
        """The time, which stands still until the test lets it pass. A test begins in February 2026."""
        return to_datetime(self._now)

    def at(self, moment: datetime) -> None:
        """Let it be that time: before the first run any time, then only a later one; what is due until then happens."""
        if moment.tzinfo is None:
            raise InvalidOptionError(f"watch.at() needs a time with a zone, got {moment!r}: add tzinfo=UTC")
        span = micros(moment - EPOCH) - self._now
        if not self._trials:
            self._skew += span
        elif span < 0:
            raise InvalidOptionError(f"watch.at() goes forward only: it is {self.now}, got {moment}")
        else:
            self._pass(span)

    def jump(self, span: Duration) -> None:
        """Let time pass: everything that becomes due happens, in order."""
        self._pass(to_micros(span, what="watch.jump()"))

    def run(self, workflow: Workflow[..., T], /, *args: Any, id: str | None = None, **kwargs: Any) -> T:
        """Run a workflow to its end, however long it sleeps, and give its result; raises what `app.run` raises."""
        trial = self._trial(workflow)
        try:
            return trial.run(workflow, args, kwargs, id)
        finally:
            self._settle()

    def start(self, workflow: Workflow[..., T], /, *args: Any, id: str | None = None, **kwargs: Any) -> "Watched":
        """Start a run, and give its handle, all of whose methods are synchronous; it goes as far as it can now."""
        trial = self._trial(workflow)
        handle = trial.do("the start", lambda: trial.app.start(workflow, *args, id=id, **kwargs))
        self._settle()
        return Watched(handle, trial, self._settle)

    def crash_everywhere(
        self,
        workflow: Workflow[..., T],
        args: Sequence[Any] = (),
        check: Check[T] | None = None,
        *,
        kwargs: dict[str, Any] | None = None,
        only: int | None = None,
        fresh: Callable[[], object] | None = None,
        died: Callable[[], object] | None = None,
    ) -> int:
        """Run a workflow again and again, and let its process die right before and right after each transaction.

        After each death a new process is started, which brings the run to its end; then `check(result, run)` is called,
        and must neither raise nor return False. It is called once without any death, too. `fresh` is called before each
        of these worlds begins, to put back what the steps have changed outside; `died` between the two processes, to
        forget what a process keeps in memory. `only` repeats a single crash point. Gives how many there were.
        """
        _refuse_inside_a_loop()
        return crash_everywhere(
            _app_of(workflow),
            workflow,
            args,
            kwargs or {},
            check,
            skew=self._skew + self._loop.now,
            replays=self.replays,
            elsewhere=self._elsewhere,
            only=only,
            fresh=fresh,
            died=died,
        )

    def close(self) -> None:
        """End the world."""
        for trial in reversed(self._trials.values()):
            trial.end()
            trial.bury()
        self._loop.bury_all()
        self._loop.close()
        self._guard.close()

    @property
    def _now(self) -> Micros:
        return DAWN + self._loop.now + self._skew

    def _trial(self, workflow: Workflow[..., Any]) -> Trial:
        _refuse_inside_a_loop()
        app = _app_of(workflow)
        if app not in self._trials:
            self._trials[app] = Trial(app, self._loop, self._skew, elsewhere=self._elsewhere)
            self._trials[app].start_process()
        return self._trials[app]

    def _pass(self, span: Micros) -> None:
        _refuse_inside_a_loop()
        self._loop.play(self._life, rest(span / SECOND))
        self._settle()

    def _settle(self) -> None:
        self._loop.settle()
        for trial in self._trials.values():
            trial.replays = self.replays
            trial.find_differences()


class Watched(Bridge):
    """The handle of a run, whose coroutines are played to their end."""

    def __init__(self, handle: Handle[Any], trial: Trial, settle: Callable[[], None]) -> None:
        super().__init__(handle)
        self._trial = trial
        self._settle = settle

    def _call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return self._trial.do(f"{function.__name__}() of {self._target!r}", lambda: function(*args, **kwargs))
        finally:
            self._settle()

    def _stand_for(self, handle: Handle[Any]) -> "Watched":
        return Watched(handle, self._trial, self._settle)


def _app_of(workflow: object) -> App:
    app = getattr(workflow, "app", None)
    if not isinstance(workflow, Workflow) or not isinstance(app, App):
        raise InvalidOptionError(f"watch takes a workflow (a function under @app.workflow), got {workflow!r}")
    return app


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WatchbillError("watch blocks, and an event loop is running here: make the test a plain `def`")
