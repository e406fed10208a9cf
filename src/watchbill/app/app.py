"""App: what a program holds: its steps and workflows, its store, and the rooms when it runs them."""

from __future__ import annotations  # what is only given back is not imported: most programs never ask for it

import asyncio
import builtins
import contextlib
import functools
import inspect
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, Protocol, TypeVar, Unpack, overload

from watchbill.app.handle import Client, Handle
from watchbill.app.wish import Wish, check_tags, wished
from watchbill.errors import InvalidOptionError, WatchbillError
from watchbill.events import Events
from watchbill.flow.program import stop_if_reading
from watchbill.flow.registry import Registry
from watchbill.flow.steps import Step, StepOptions
from watchbill.flow.workflows import START_KEYWORDS, Workflow, WorkflowOptions
from watchbill.forks import FORKS
from watchbill.model.duration import Duration, to_micros
from watchbill.model.keys import given_keys
from watchbill.model.run import MOST_SLOTS, Draws, NewRun, check_id, check_region, unique_text

if TYPE_CHECKING:
    from watchbill.app.agents import AgentStatus
    from watchbill.app.status import ScheduleStatus
    from watchbill.app.supervision import SupervisionStatus
    from watchbill.model.gate import GateRow
    from watchbill.model.incident import Incident
    from watchbill.model.logbook import Logged
    from watchbill.model.policies import StepPolicy
    from watchbill.model.question import InboxItem
    from watchbill.model.report_card import Metrics
    from watchbill.model.suggestion import Suggestion

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_STORE: Final = "sqlite:///watchbill.db"


class StepDecorator(Protocol):
    """What `@app.step(...)` gives: it makes a step of a sync or an async function alike."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> Step[P, T]: ...


class WorkflowDecorator(Protocol):
    """What `@app.workflow(...)` gives."""

    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> Workflow[P, T]:
        """Make a workflow of an async function."""
        ...


class App:
    """A program's steps and workflows around one store."""

    def __init__(
        self,
        store: str | None = None,
        *,
        namespace: str = "default",
        retention: Duration | None = None,
        alerts: str | Iterable[str] | None = None,
        keys: str | None = None,
        ping: str | None = None,
    ) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", namespace):
            raise InvalidOptionError(f"a namespace has 1-100 characters of A-Z a-z 0-9 . _ -, got {namespace!r}")
        # An empty variable is one that somebody has unset; an empty argument is a mistake, and refused at first use.
        self.url = store if store is not None else os.environ.get("WATCHBILL_STORE") or DEFAULT_STORE
        self.namespace = namespace
        self.retention = None if retention is None else to_micros(retention, what="App(retention=)")
        self.routes = _given_routes(alerts)
        self.keys = given_keys(keys)
        self.ping = _given_ping(ping)
        self.registry = Registry(seals=self.keys is not None)
        self.events = Events()
        # Two threads may want the first one at the same time, and a cached property has no lock since Python 3.12.
        self._making = threading.Lock()
        self._made_hall: Client | None = None
        self._made_sync: object = None
        FORKS.when_forked(self._forget)

    def _forget(self) -> None:
        self._making = threading.Lock()  # another thread of the parent may have held the old one

    # --- what an author writes

    @overload
    def step(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> Step[P, T]: ...
    @overload
    def step(self, function: Callable[P, T], /) -> Step[P, T]: ...
    @overload
    def step(self, /, **options: Unpack[StepOptions]) -> StepDecorator: ...

    def step(self, function: Callable[..., Any] | None = None, /, **options: Unpack[StepOptions]) -> object:
        """Make a function a step: `@app.step` or `@app.step(timeout="10m", retry=2)`."""

        def add(function: Callable[..., Any]) -> Step[..., Any]:
            step: Step[..., Any] = Step(function, **options)
            self.registry.add_step(step)
            return step

        return add if function is None else add(function)

    @overload
    def workflow(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> Workflow[P, T]: ...
    @overload
    def workflow(self, /, **options: Unpack[WorkflowOptions]) -> WorkflowDecorator: ...

    def workflow(self, function: Callable[..., Any] | None = None, /, **options: Unpack[WorkflowOptions]) -> object:
        """Make an async function a workflow: `@app.workflow` or `@app.workflow(retry=5)`."""

        def add(function: Callable[..., Any]) -> Workflow[..., Any]:
            workflow: Workflow[..., Any] = Workflow(function, **options)
            self.registry.add_workflow(workflow)
            workflow.app = self
            return workflow

        return add if function is None else add(function)

    def lifespan(self, function: Callable[[], AsyncIterator[Any]]) -> Callable[[], AsyncIterator[Any]]:
        """Set up what steps share, once in every process that runs them: `@app.lifespan` on an async generator.

        What it yields is `attempt().state`: pools, clients. After the last step it goes on behind its `yield`.
        """
        if self.registry.lifespan is not None:
            raise InvalidOptionError("this App has a lifespan already: put both into one")
        if not inspect.isasyncgenfunction(function):
            raise InvalidOptionError(f"@app.lifespan takes an `async def` that yields once, got {function!r}")
        self.registry.lifespan = contextlib.asynccontextmanager(function)
        return function

    # --- running

    def run(self, workflow: Workflow[..., T], /, *args: Any, id: str | None = None, **kwargs: Any) -> T:
        """Run a workflow to its end in this process and give its result. For scripts: it blocks."""
        stop_if_reading()
        if _event_loop_runs():
            raise WatchbillError("app.run() blocks, and an event loop is running here: use `await app.start(...)`")
        if kwargs.get("tx") is not None:
            raise InvalidOptionError(
                "run(tx=) would wait for a run that is not there before you commit: use start(tx=), commit, result()"
            )
        id = check_id(id) if id is not None else _new_run_id(workflow, self._hall.env)
        try:
            return asyncio.run(self._run(workflow, args, kwargs, id))
        except KeyboardInterrupt:
            hint = f"run {id!r} stays open: run it again with id={id!r} and it goes on where it was"
            print(hint, file=sys.stderr)  # noqa: T201 - said to the person who pressed Ctrl-C
            raise

    async def _run(self, workflow: Workflow[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], id: str) -> T:
        named = dict(kwargs)
        wish = Wish(id, **{name: named.pop(name) for name in START_KEYWORDS & named.keys()})
        _, run = asked = self._new_run(workflow, args, named, wish)
        return await self._hall.run(*asked, functools.partial(self.rooms, region=run.region or None))

    @contextlib.asynccontextmanager
    async def rooms(
        self,
        *,
        scheduler: bool = True,
        agent: bool = True,
        supervisor: bool = True,
        slots: int = 1_000,
        threads: int = 32,
        needs: str | Iterable[str] | Mapping[str, int] = (),
        region: str | None = None,
        profile: str = "critical",
        supervision: str = "embedded",
    ) -> AsyncIterator[App]:
        """Open the rooms in this process: every open run of the store that this code knows goes on.

        `needs` are the capabilities of the agent beside them, as steps ask for them: `["gpu", "eu"]` or `{"gpu": 2}`.
        Rooms with a `region` serve the runs of that region; those without one serve the runs without one. `profile`
        says how soon this process is missed when it dies: `critical`, `standard` or `batch`. `supervision` says how
        supervisors of several processes divide the work: `embedded` (each watches everything), `centralized` (one does,
        the others wait for its end) or `distributed` (each watches its share).
        """
        stop_if_reading()
        from watchbill.model.needs import parse_needs
        from watchbill.model.profile import profile_named
        from watchbill.model.watcher import supervision_named

        have, place = parse_needs(needs), check_region(region, "rooms()")
        profile_named(profile)
        supervision_named(supervision)
        for name, value in (("slots", slots), ("threads", threads)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_SLOTS:
                raise InvalidOptionError(
                    f"rooms({name}=) must be above zero, a whole number, and at most {MOST_SLOTS:,}, got {value!r:.200}"
                )
        async with self._hall.rooms(
            scheduler=scheduler,
            agent=agent,
            supervisor=supervisor,
            slots=slots,
            threads=threads,
            have=have,
            region=place,
            profile=profile,
            supervision=supervision,
        ):
            yield self

    # --- starting and finding runs

    async def start(
        self,
        workflow: Workflow[..., T],
        /,
        *args: Any,
        id: str | None = None,
        priority: int | None = None,
        at: datetime | None = None,
        delay: Duration | None = None,
        tags: Iterable[str] | None = None,
        region: str | None = None,
        deadline: Duration | datetime | None = None,
        tx: object = None,
        **kwargs: Any,
    ) -> Handle[T]:
        """Start a run; durable when this returns. The same id with the same work gives the run that is there.

        `priority` is a head start of a minute for each point; `at` and `delay` say when it begins; `deadline` when it
        is stopped and fails, as a time or a span from its start; `tags` are for finding it; `region` says whose
        schedulers and agents do it.

        `tx`: your own open connection to the store's database (asyncpg, psycopg, or sqlite3 to its own file). The run
        is there when your transaction commits, with your rows, and is noticed within a second; or never. Until then its
        `status()` raises RunNotFound, and its `result()` waits. A connection that commits each statement does so here.
        """
        stop_if_reading()
        wish = Wish(id, priority, at, delay, tags, region, deadline)
        return (await self._hall.start([self._new_run(workflow, args, kwargs, wish)], tx))[0]

    async def start_many(self, starts: Sequence[tuple[Any, ...]]) -> list[Handle[Any]]:
        """Start many runs in one commit, all or none: `(workflow, args)` or `(workflow, args, {"id": ...})` each.

        The dictionary has the keywords of `start`; `tx` is the same for all of them, or for none.
        """
        stop_if_reading()
        asked = [self._asked(*start) for start in starts]
        connections = {builtins.id(tx): tx for _, _, tx in asked}
        if len(connections) > 1:
            raise InvalidOptionError(
                "start_many() is one commit: give every run the same tx, or none of them; got different ones"
            )
        tx = next(iter(connections.values()), None)
        return await self._hall.start([(workflow, run) for workflow, run, _ in asked], tx)

    def handle(self, id: str, workflow: Workflow[..., T] | None = None) -> Handle[T]:
        """Give a handle on a run by its id; without its workflow, results are plain JSON values."""
        return Handle(self._hall, id, workflow)

    def runs(
        self,
        *,
        status: str | None = None,
        health: str | None = None,
        workflow: str | None = None,
        tags: Iterable[str] = (),
    ) -> AsyncIterator[Handle[Any]]:
        """Find runs, newest first: `async for handle in app.runs(status="failed")`. They have all of the tags."""
        stop_if_reading()
        return self._hall.runs(status, health, workflow, check_tags(tags))

    async def agents(self) -> list[AgentStatus]:
        """Give the agents that run steps, those at work first: what they have and do, and when they were last heard."""
        stop_if_reading()
        return await self._hall.agents()

    async def supervision(self) -> SupervisionStatus:
        """Say who watches what, how late that is, and what was found that cannot be."""
        stop_if_reading()
        return await self._hall.supervision()

    async def inbox(self) -> list[InboxItem]:
        """Give what waits for a person, oldest first: questions, and calls that only a person moves."""
        stop_if_reading()
        return await self._hall.inbox()

    async def answer(self, id: str, value: object, *, by: str = "client", force: bool = False) -> None:
        """Answer a question of the inbox; durable when this returns.

        An answer that does not fit the question's form is refused by the run: the item stays, and says why. What
        somebody else holds is answered only with `force`.
        """
        stop_if_reading()
        await self._people.answer(id, value, by, force=force)

    async def claim(self, id: str, *, by: str) -> datetime:
        """Hold an item of the inbox for 15 minutes: nobody else answers it meanwhile. Gives until when."""
        stop_if_reading()
        from watchbill.clock import to_datetime

        return to_datetime((await self._people.claim(id, by)).until)

    async def resolve(
        self,
        id: str,
        action: str,
        value: object = None,
        *,
        by: str = "client",
        reason: str,
        args: dict[str, Any] | None = None,
        call: str | None = None,
        per_second: int = 50,
        force: bool = False,
    ) -> None:
        """Decide about calls that wait for a person, or about the runs of an incident; durable when this returns.

        `id` is an incident, and all of its calls are meant; or an item of the inbox; or with `call` a run. `action`:
        `retry` (with fresh budgets; `args` are other arguments, by name), `resume` (the same, of all calls),
        `provide` (`value` is the result), `skip` (the result is None), `undo` (the run fails, and is undone), `abort`
        (the run is cancelled). Of the calls of an incident at most `per_second` go on in each second. What does not
        fit the step's types is refused by the run: the call waits on, and its item says why. Runs that stand still are
        resumed or aborted; of runs that have ended, `retry` makes new ones, and `skip` leaves them as they are.
        """
        stop_if_reading()
        await self._people.resolve(
            id, action, value, by=by, reason=reason, args=args, call=call, per_second=per_second, force=force
        )

    async def gates(self) -> list[GateRow]:
        """Give the gates, by name: limits, dependencies and how they are, and what is paused."""
        stop_if_reading()
        return await self._hall.gates()

    async def policies(self) -> list[StepPolicy]:
        """Give what operators have changed of the policies of steps, by step."""
        stop_if_reading()
        found: list[StepPolicy] = await self._policies.list()
        return found

    async def set_policy(self, step: str, changes: Mapping[str, Any], *, reason: str, by: str = "client") -> None:
        """Change options of a step's policy without a deploy, for calls that are live and for those to come.

        `changes` are options as `@app.step` has them: `timeout`, `stall`, `retry` (or `retries`, `backoff`, `factor`,
        `cap`), `learned`; those that it does not name stay as they are. What runs is judged by the new limits at once.
        """
        stop_if_reading()
        await self._policies.set(step, changes, by=by, reason=reason)

    async def clear_policy(self, step: str, *, reason: str, by: str = "client") -> None:
        """Let a step's policy be as the code says again, for calls that are live, too."""
        stop_if_reading()
        await self._policies.clear(step, by=by, reason=reason)

    async def incidents(self, *, resolved: bool = False) -> list[Incident]:
        """Give the incidents that are open, newest first; with those that are resolved, if asked for."""
        stop_if_reading()
        return await self._hall.incidents(resolved=resolved)

    async def logbook(self, limit: int = 100) -> list[Logged]:
        """Give what people ordered of gates, policies, agents, schedules and incidents, newest first, for a year.

        What was ordered of a run is in its own timeline.
        """
        from watchbill.model.logbook import LONGEST

        stop_if_reading()
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LONGEST:
            raise InvalidOptionError(f"logbook(limit=) is a number from 1 to {LONGEST:,}, got {limit!r:.200}")
        found: list[Logged] = await self._hall.read(lambda doors: doors.logbook(self._hall.namespace, limit))
        return found

    async def metrics(self, within: Duration = "1d") -> Metrics:
        """Say how runs went within a time, what broke, how soon it was found, and how it was cured.

        `.success_rate`, `.retries_per_run`, `.detected` and `.recovered` (median and worst), `.stalls`, `.late_results`
        that were refused, `.supervisor_lag`, `.queue_age`, `.violations` that self-audits found; and `.cards`, what
        became of each symptom.
        """
        stop_if_reading()
        return await self._hall.metrics(within)

    async def suggestions(self) -> list[Suggestion]:
        """Give the budgets that the history of steps speaks for, with their evidence, by step and rung.

        Where `learned` is `"suggest"` also how many attempts would have been ended by them in the last week
        (`.beyond`), and how many of these were done by themselves (`.by_itself`).
        """
        stop_if_reading()
        return await self._hall.advised({name: step.resolve().policy for name, step in self.registry.steps.items()})

    # --- schedules

    async def schedule(
        self,
        workflow: Workflow[..., Any],
        /,
        *args: Any,
        id: str,
        cron: str | None = None,
        every: Duration | None = None,
        tz: str | None = None,
        overlap: Literal["skip", "queue", "allow"] = "skip",
        catchup: Literal["none", "last", "all"] = "last",
        reason: str = "",
        by: str = "a program",
        **kwargs: Any,
    ) -> ScheduleStatus:
        """Create a schedule at run time; durable when this returns. Its runs are called with these arguments.

        The options are those of `@app.workflow`. If the id is taken by a schedule that was created like this one,
        nothing changes; if that one differs, it becomes like this one. Another timing begins with its next slot.
        """
        stop_if_reading()
        from watchbill.flow.schedules import check_schedule_id, spec_of

        self._check_known(workflow, "schedule")
        owner = check_schedule_id(id)
        if cron is None and every is None:
            raise InvalidOptionError(f"{owner} needs cron= or every=: they say when it runs")
        options = {"cron": cron, "every": every, "tz": tz, "overlap": overlap, "catchup": catchup}
        body = workflow.signature.encode_args(args, kwargs)
        workflow.signature.decode_args(body)
        self._hall.check_code(workflow)
        created: ScheduleStatus = await self._schedules.create(id, workflow, spec_of(owner, options), body, reason, by)
        return created

    async def unschedule(self, id: str, reason: str = "", *, by: str = "a program") -> None:
        """Delete a schedule that was created at run time. Its runs stay; slots that wait for a run are dropped."""
        await self._schedules.delete(id, reason, by)

    async def schedules(self) -> list[ScheduleStatus]:
        """Give all schedules of the store, by name: those in code, and those that were created at run time."""
        found: list[ScheduleStatus] = await self._schedules.list()
        return found

    async def pause_schedule(self, name: str, reason: str = "", *, by: str = "a program") -> None:
        """Start no slot of a schedule until it is resumed; what runs goes on."""
        await self._schedules.pause(name, reason, by)

    async def resume_schedule(self, name: str, reason: str = "", *, by: str = "a program") -> None:
        """Let a schedule run again; its `catchup` says which slots of the meantime are made up for."""
        await self._schedules.resume(name, reason, by)

    async def run_schedule(self, name: str) -> Handle[Any]:
        """Start a run of a schedule now, beside its slots."""
        workflow, [id] = await self._schedules.run(name)
        return Handle(self._hall, id, self.registry.workflows.get(workflow))

    async def backfill_schedule(
        self, name: str, since: datetime, until: datetime, reason: str = "", *, by: str = "a program"
    ) -> list[Handle[Any]]:
        """Start the slots from `since` up to `until`, as the schedule's `overlap` allows; those that ran do not again.

        Times without a zone are in the schedule's zone. At most 1,000 slots may wait at once.
        """
        workflow, ids = await self._schedules.backfill(name, since, until, reason, by)
        handles = [Handle(self._hall, id, self.registry.workflows.get(workflow)) for id in ids]
        for handle in handles:
            handle.pending = True
        return handles

    @property
    def _people(self) -> Any:
        from watchbill.app.people import People  # likewise

        return People(self._hall)

    @property
    def _policies(self) -> Any:
        from watchbill.app.policies import StepPolicies  # likewise

        return StepPolicies(self._hall, self.registry.steps)

    @property
    def _schedules(self) -> Any:
        from watchbill.app.schedules import Schedules  # with the store's doors: only for those who need them

        return Schedules(self._hall)

    # Not `functools.cached_property`: in Python 3.11 it has a lock, which a forked child may find taken for ever.
    @property
    def sync(self) -> Any:
        """The same client for synchronous programs: `app.sync.start(wf, 1).result()`."""
        if self._made_sync is not None:
            return self._made_sync
        from watchbill.app.sync import Sync

        with self._making:
            self._made_sync = self._made_sync or Sync(self, lambda: self._hall.loop)
        return self._made_sync

    async def close(self) -> None:
        """Let go of the store that a client without rooms has opened."""
        await self._hall.close()

    def meet_in(self, hall: Client) -> Callable[[], None]:
        """Meet in another hall than this App's own from now on, a test's; gives the function that goes back."""
        before, self._made_hall = self._made_hall, hall

        def back() -> None:
            self._made_hall = before

        return back

    @property
    def _hall(self) -> Client:
        if self._made_hall is not None:
            return self._made_hall
        # The rooms and the store are half of the import time, and a program that only defines steps needs neither.
        from watchbill.app.hall import Hall

        with self._making:
            self._made_hall = self._made_hall or Hall(
                self.url,
                self.namespace,
                self.registry,
                self.events,
                retention=self.retention,
                keys=self.keys,
                routes=self.routes,
                ping=self.ping,
            )
        return self._made_hall

    def _asked(
        self, workflow: Workflow[..., Any], args: Sequence[Any] = (), options: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Workflow[..., Any], NewRun, object]:
        kwargs = dict(options)
        tx = kwargs.pop("tx", None)
        wish = Wish(**{name: kwargs.pop(name) for name in START_KEYWORDS & kwargs.keys()})
        return *self._new_run(workflow, tuple(args), kwargs, wish), tx

    def _new_run(
        self, workflow: Workflow[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], wish: Wish
    ) -> tuple[Workflow[..., Any], NewRun]:
        self._check_known(workflow)
        body = workflow.signature.encode_args(args, kwargs)
        workflow.signature.decode_args(body)  # a wrong type is refused here, where it happened
        env = self._hall.env
        run_id = check_id(wish.id) if wish.id is not None else _new_run_id(workflow, env)
        num = env.new_id()
        new = NewRun(num, self.namespace, run_id, workflow.name, workflow.version, body)
        return workflow, wished(new, wish, workflow)

    def _check_known(self, workflow: object, act: str = "start") -> None:
        if not isinstance(workflow, Workflow):
            raise InvalidOptionError(f"{act}() takes a workflow (a function under @app.workflow), got {workflow!r}")
        if self.registry.find(workflow.name, workflow.version) is not workflow:
            raise InvalidOptionError(f"workflow {workflow.name!r} belongs to another App: {act} it there")


def _new_run_id(workflow: Workflow[..., Any], draws: Draws) -> str:
    name = re.sub(r"[^A-Za-z0-9._:-]", "_", getattr(workflow, "name", "run"))[:100]
    return f"{name}-{unique_text(draws)}"


def _given_routes(alerts: str | Iterable[str] | None) -> Any:
    """Read where alerts go: from the argument, else from the environment."""
    given = os.environ.get("WATCHBILL_ALERTS") or None if alerts is None else alerts
    if given is None:
        return ()
    from watchbill.model.alert import read_routes  # few programs alert anybody

    return read_routes(given)


def _given_ping(ping: str | None) -> str | None:
    """Read where pings go: from the argument, else from the environment."""
    given = os.environ.get("WATCHBILL_PING") if ping is None else ping
    if not given:
        return None
    from watchbill.supervisor.ping import check_ping  # few programs have one

    return check_ping(given)


def _event_loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
