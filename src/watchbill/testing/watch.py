"""Watch: what the fixture `watch` gives to the tests of users. All of it is synchronous, and takes no real time."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from watchbill.app.app import App
from watchbill.app.handle import Handle
from watchbill.app.sync import Bridge
from watchbill.clock import EPOCH, SECOND, Micros, micros, to_datetime
from watchbill.errors import InvalidOptionError, InvalidValueError, WatchbillError
from watchbill.flow.guard import GUARD
from watchbill.flow.workflows import Workflow
from watchbill.model.duration import Duration, to_micros
from watchbill.model.incident import Incident
from watchbill.model.question import InboxItem
from watchbill.testing.crashes import Check, crash_everywhere
from watchbill.testing.elsewhere import Elsewhere
from watchbill.testing.envs import DAWN, Ids
from watchbill.testing.patient import PatientLoop
from watchbill.testing.posted import PostBox, Posted
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
        self._ids = Ids(self._loop)  # of all Apps: an item of an inbox is found by its id alone
        self._box = PostBox()
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

    def runs(
        self,
        *,
        status: str | None = None,
        health: str | None = None,
        workflow: str | None = None,
        tags: Iterable[str] = (),
    ) -> list["Watched"]:
        """Find runs, newest first, as `app.runs()` does; they have all of the tags."""
        _refuse_inside_a_loop()
        found: list[Watched] = []
        for trial in self._trials.values():

            async def find(app: App = trial.app) -> list[Handle[Any]]:
                return [run async for run in app.runs(status=status, health=health, workflow=workflow, tags=tags)]

            found += [Watched(run, trial, self._settle) for run in trial.do("runs()", find)]
        return found

    # --- people

    def inbox(self) -> list[InboxItem]:
        """Give what waits for a person, oldest first, as `app.inbox()` does."""
        return self._all("inbox()", App.inbox)

    def answer(self, item: InboxItem | str, value: object, by: str = "test") -> None:
        """Answer a question of the inbox, or the one with that id; the run goes as far as it can now.

        Raises InvalidValueError if the run refuses the answer, because it does not fit the form of the question.
        """
        id = _id_of(item, "answer")
        asked = self._item(id)
        if asked is not None and asked.kind != "question":
            raise InvalidOptionError(f"{id!r} is no question, {asked.question}: decide by watch.resolve(item, action)")
        trial = self._trial_of(id, "answer")
        trial.do("the answer", lambda: trial.app.answer(id, value, by=by))
        self._settle()
        self._check_taken(id)

    def incidents(self, *, resolved: bool = False) -> list[Incident]:
        """Give the open incidents, newest first, as `app.incidents()` does; with those that are resolved, if asked."""
        return self._all("incidents()", lambda app: app.incidents(resolved=resolved))

    def resolve(
        self,
        item: Incident | InboxItem | str,
        action: str,
        value: object = None,
        *,
        by: str = "test",
        reason: str = "test",
        args: dict[str, Any] | None = None,
    ) -> None:
        """Decide about an incident, or about a call of the inbox, as `app.resolve()` does: retry, provide, skip, ...

        Raises InvalidValueError if the run refuses a decision about a call, because it does not fit the step's types.
        """
        id = _id_of(item, "resolve")
        trial = self._trial_of(id, "resolve")
        trial.do("the decision", lambda: trial.app.resolve(id, action, value, by=by, reason=reason, args=args))
        self._settle()
        self._check_taken(id)

    @property
    def posted(self) -> list[Posted]:
        """The webhooks and alerts of this test, in order: recorded, and never sent."""
        return self._box.posted

    def refuse_posts(self, times: int = 1, status: int = 503) -> None:
        """Refuse the next webhooks and alerts with an HTTP status; which are sent again, docs/webhooks.md says."""
        self._box.refuse(times, status)

    # --- crashes

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
            self._trials[app] = Trial(
                app, self._loop, self._skew, elsewhere=self._elsewhere, ids=self._ids, box=self._box
            )
            self._trials[app].start_process()
        return self._trials[app]

    def _all(self, what: str, ask: Callable[[App], Coroutine[Any, Any, list[T]]]) -> list[T]:
        """Ask each App of this test, in the order of their first runs."""
        _refuse_inside_a_loop()
        return [found for trial in self._trials.values() for found in trial.do(what, partial(ask, trial.app))]

    def _item(self, id: str) -> InboxItem | None:
        return next((item for item in self.inbox() if item.id == id), None)

    def _check_taken(self, id: str) -> None:
        """Raise what a run says about an answer or a decision that it refused."""
        left = self._item(id)
        if left is not None and left.answered_by is None and left.refused is not None:
            raise InvalidValueError(f"{left.question!r} still waits for a person: {left.refused}")

    def _trial_of(self, id: str, what: str) -> Trial:
        """Find the App of an item or an incident; if none has it, any App says so."""
        _refuse_inside_a_loop()
        trials = list(self._trials.values())
        if not trials:
            raise InvalidOptionError(f"watch.{what}(): no run was started in this test, so nothing waits for a person")
        for trial in trials[1:]:
            items, incidents = trial.do("inbox()", trial.app.inbox), trial.do("incidents()", trial.app.incidents)
            if id in {*[item.id for item in items], *[incident.id for incident in incidents]}:
                return trial
        return trials[0]

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
        self._handle = handle
        self._trial = trial
        self._settle = settle

    def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the end of the run, and give its result; with `timeout`, for so much virtual time at most."""
        if timeout is not None:
            return self._call(self._handle.result, (timeout,), {})
        try:
            return self._trial.result(self._handle)
        finally:
            self._settle()

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


def _id_of(item: object, what: str) -> str:
    if isinstance(item, InboxItem | Incident):
        return item.id
    if not isinstance(item, str):
        raise InvalidOptionError(f"watch.{what}() takes an item of watch.inbox(), or its id; got {item!r:.200}")
    return item


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WatchbillError("watch blocks, and an event loop is running here: make the test a plain `def`")
