"""Hall: where a program meets its store: opens it, builds the house around it, and serves the handles."""

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

from watchbill.app.again import check_retried
from watchbill.app.agents import AgentStatus, agent_status, chosen_agent
from watchbill.app.explain import explain
from watchbill.app.handle import Handle
from watchbill.app.house import House
from watchbill.app.measuring import measured
from watchbill.app.redrawing import submit_redrawn
from watchbill.app.report import log_shown, status_of
from watchbill.app.residence import check_residence
from watchbill.app.rollcall import supervision_of
from watchbill.app.search import place_of, searched
from watchbill.app.status import AttemptLog, Explanation, RunStatus, TimelineEvent
from watchbill.app.supervision import SupervisionStatus
from watchbill.app.sync import caller_thread
from watchbill.app.timeline import timeline_of
from watchbill.app.tracing import graph_in
from watchbill.app.visit import ONE_DOOR, PATIENCE, Visit, open_to_own, while_there
from watchbill.app.waiting import POLL, Waiting
from watchbill.borrowed import borrow, check_kind, must_be_awaited
from watchbill.clock import SECOND, Micros
from watchbill.env import Env, SystemEnv, abandon_loop, busy_interpreter
from watchbill.errors import (
    IdTakenError,
    ImpureWorkflowError,
    InvalidOptionError,
    RunEnded,
    RunHeld,
    RunLive,
    RunNotFound,
    SealedError,
    StoreError,
    StoreFailingError,
    StoreOutdatedError,
    StoreOwnedError,
    StoreUnreachableError,
    WatchbillError,
)
from watchbill.events import RUN_DELETED, STORE_FAILING, STORE_RECOVERED, Event, Events
from watchbill.flow import copies
from watchbill.flow.endings import error_of
from watchbill.flow.execute import DEFAULT_SLOTS, DEFAULT_THREADS
from watchbill.flow.logs import marked_records
from watchbill.flow.names import did_you_mean
from watchbill.flow.parts import why_stopping
from watchbill.flow.registry import Registry
from watchbill.flow.replay import current
from watchbill.flow.scan import scan
from watchbill.flow.values import encode, plain
from watchbill.flow.workflows import Workflow
from watchbill.forks import FORKS, abandon, forget_wakeups
from watchbill.model.agent import Wish
from watchbill.model.alert import Route
from watchbill.model.call import JournalRow
from watchbill.model.duration import Duration, to_micros
from watchbill.model.facts import FactKind, RetryAsked
from watchbill.model.failed import Copied
from watchbill.model.gate import GateAct, GateOrder, GateRow
from watchbill.model.graph import Graph
from watchbill.model.incident import Incident, incident_of
from watchbill.model.keys import Keys
from watchbill.model.logbook import LogEntry
from watchbill.model.needs import parse_needs, written
from watchbill.model.policy import Policy
from watchbill.model.profile import profile_named
from watchbill.model.question import InboxItem, inbox_item
from watchbill.model.queue import QueueDepth
from watchbill.model.report_card import Metrics
from watchbill.model.resolution import check_name, check_reason
from watchbill.model.run import NewRun, code_name, is_id, unique_text
from watchbill.model.sealed import is_sealed, why_sealed
from watchbill.model.states import RunState
from watchbill.model.stop import check_gate
from watchbill.model.suggestion import Suggestion
from watchbill.model.watcher import supervision_named
from watchbill.store.open import (
    Driven,
    Reader,
    is_file,
    is_memory,
    open_reader,
    open_store,
    receiving_guests,
    transactions_beside,
)
from watchbill.store.protocol import (
    EVERY,
    REDRAWN,
    ClientStore,
    Deleted,
    Ending,
    Hint,
    NewFact,
    Record,
    Started,
    Store,
    Told,
    Transactions,
)
from watchbill.store.sealed import Seal, unsealed
from watchbill.supervisor.sending import check_sendable

T = TypeVar("T")

FIRST_PAUSE: Final[Micros] = SECOND // 10
LONGEST_PAUSE: Final[Micros] = SECOND
# How long a request waits for a disk that refuses: a person has to mend it, and the program should hear of it soon.
DISK_PATIENCE: Final[Micros] = 5 * SECOND

LONGEST_REFERENCE: Final = 200
PAGE: Final = 100  # runs that are read at a time
DELETED_AT_ONCE: Final = 1_000  # rows: others who write wait for no more than that


class Hall:
    """The store of a program. A file is owned while rooms are open, and for one door at a time otherwise; while another
    process owns it, doors go through that one. Other stores stay open: in memory there is one for all, on PostgreSQL
    one per event loop, to which its connections belong.
    """

    def __init__(
        self,
        url: str,
        namespace: str,
        registry: Registry,
        events: Events,
        env: Env | None = None,
        *,
        retention: Micros | None = None,
        keys: Keys | None = None,
        routes: Sequence[Route] = (),
        ping: str | None = None,
    ) -> None:
        self.url = url
        self._seal = None if keys is None else Seal(keys)
        self.namespace = namespace
        self.env: Env = SystemEnv() if env is None else env
        self.loop: asyncio.AbstractEventLoop | None = None  # the event loop of the open rooms
        self._registry = registry
        self._retention = retention
        self._routes = routes  # of alerts
        self._ping = ping  # who is to hear that supervision is on time
        self._events = events
        self._scanned: set[str] = set()
        self._store: Store | None = None  # of the open rooms, or in memory
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Store]] = WeakKeyDictionary()
        self._visits: dict[asyncio.AbstractEventLoop, Visit] = {}
        self._waiting: Waiting | None = None
        self._house: House | None = None
        self._deaf: list[Callable[[], None]] = []
        FORKS.when_forked(self._forget)

    def _forget(self) -> None:
        """Forget in a forked child what its parent has open: loops, stores, components."""
        if self.loop is not None:
            forget_wakeups()
        for loop in {self.loop, *self._opened, *self._visits}:
            abandon_loop(loop)
        abandon(self._store, self._opened, self._visits, self._waiting, self._house, tuple(self._deaf))
        self._stop_listening()
        self.loop = self._store = self._waiting = self._house = None
        self._opened, self._visits = WeakKeyDictionary(), {}

    @contextlib.asynccontextmanager
    async def rooms(
        self,
        *,
        scheduler: bool,
        agent: bool,
        supervisor: bool,
        slots: int,
        threads: int,
        have: Mapping[str, int],
        region: str,
        profile: str,
        supervision: str,
    ) -> AsyncIterator[None]:
        """Open the rooms."""
        if self.loop is not None:
            raise WatchbillError("the rooms of this App are open already: one `async with app.rooms()` at a time")
        if scheduler:
            self._check_schedules()
        if supervisor:
            check_sendable(self._routes)
        self.loop = asyncio.get_running_loop()
        try:
            async with (
                self._owned() as store,
                receiving_guests(unsealed(store), self.env, lambda: self._driven(scheduler, region)),
            ):
                house, waiting = self._build(
                    store,
                    scheduler=scheduler,
                    agent=agent,
                    supervisor=supervisor,
                    slots=slots,
                    threads=threads,
                    have=have,
                    region=region,
                    profile=profile,
                    supervision=supervision,
                )
                async with self._registry.alive() if agent else contextlib.nullcontext():
                    await house.start()
                    try:
                        with busy_interpreter(), marked_records():
                            yield
                    finally:
                        self._stop_listening()
                        self._waiting = self._house = None
                        waiting.close()
                        await house.stop()
        finally:
            self.loop = None

    def _build(
        self,
        store: Store,
        *,
        scheduler: bool = True,
        agent: bool = True,
        supervisor: bool = True,
        slots: int = DEFAULT_SLOTS,
        threads: int = DEFAULT_THREADS,
        have: Mapping[str, int] | None = None,
        region: str = "",
        profile: str = "critical",
        supervision: str = "embedded",
    ) -> tuple[House, Waiting]:
        """Build the house around the store, and a place for those who wait for runs to end."""
        check_residence(store, region)
        self._waiting = waiting = Waiting(self.env, store.client, shared=not store.lasting_leases)
        self._deaf = [
            self._events.listen(waiting.notice),
            store.listen(Hint.CLIENT, waiting.hint, elsewhere=True),
            store.health.listen(self._tell_health),
        ]
        self._house = house = House(
            self.env,
            store,
            self._registry,
            self._events,
            namespace=self.namespace,
            scheduler=scheduler,
            agent=agent,
            supervisor=supervisor,
            slots=slots,
            threads=threads,
            have=have,
            region=region,
            profile=profile_named(profile),
            retention=self._retention,
            routes=self._routes,
            supervision=supervision_named(supervision),
            ping=self._ping,
            on_failure=waiting.fail,
        )
        return house, waiting

    def _stop_listening(self) -> None:
        for deaf in self._deaf:
            deaf()
        self._deaf.clear()

    def _tell_health(self, error: StoreError | None, lasted: Micros) -> None:
        """Tell those who have subscribed that the store fails, or is back. Its own time may be unknown now."""
        now = self.env.clock.wall()
        if error is None:
            event = Event(STORE_RECOVERED, now, "store", duration=lasted)
        else:
            event = Event(STORE_FAILING, now, "store", cause=type(error).__name__, note=str(error))
        self._events.tell([event])

    async def failed(self) -> None:
        """Wait until one of the open rooms has ended by itself: its store cannot be used any more."""
        if self._house is not None:
            await self._house.failed.wait()

    def _driven(self, scheduler: bool, region: str) -> Driven:
        driven = tuple(_driven_name(name, region) for name in self._registry.names()) if scheduler else ()
        return Driven(self.namespace, driven)

    async def run(
        self, workflow: Workflow[..., T], run: NewRun, rooms: Callable[[], AbstractAsyncContextManager[object]]
    ) -> T:
        """Run to the end: in rooms of our own, or at the process that has them, for as long as it has."""
        until = self.env.clock.boot() + PATIENCE
        handle: Handle[T]
        while True:
            try:
                async with rooms():
                    [handle] = await self.start([(workflow, run)])
                    return _read(handle, await self._ending(handle, held_too=True))
            except StoreOwnedError as owned:
                guest = await self._visit().guest() if owned.address is not None else None
                if guest is None and self.env.clock.boot() >= until:
                    raise
            if guest is None:  # it was there a moment ago: it has died, or closes
                await self.env.wait(asyncio.Event(), ONE_DOOR)
                continue
            code = _driven_name(code_name(workflow.name, workflow.version), run.region)
            if not guest.knows(self.namespace, code):
                where = f" in region {run.region!r}" if run.region else ""
                raise guest.refusal(f"its code does not drive workflow {workflow.name!r} of {self.namespace!r}{where}")
            [handle] = await self.start([(workflow, run)])
            ending = await while_there(guest, self._ending(handle, held_too=True))
            if ending is not None:
                return _read(handle, ending)
            until = self.env.clock.boot() + PATIENCE

    async def start(self, asked: Sequence[tuple[Workflow[..., Any], NewRun]], tx: object = None) -> list[Handle[Any]]:
        """Insert runs, all or none, and give their handles; `tx`: in the user's own transaction."""
        for workflow, _ in asked:
            self.check_code(workflow)
        runs = [run for _, run in asked]
        if tx is not None:
            return await self._start_in(tx, [workflow for workflow, _ in asked], runs)
        if self._store is not None:
            self._check_place()
            client = self._store.client
            try:
                submitted = await self._insist(lambda: client.submit(runs))
            except IdTakenError:
                submitted = await submit_redrawn(self.env, runs, lambda work: self._insist(lambda: work(client)))
        else:
            try:
                submitted = await self.write(lambda client: client.submit(runs))
            except IdTakenError:
                submitted = await submit_redrawn(self.env, runs, self.write)
        return [
            Handle(self, there.run.id, workflow, there.run.num)
            for (workflow, _), there in zip(asked, submitted, strict=True)
        ]

    async def _start_in(
        self, tx: object, workflows: Sequence[Workflow[..., Any]], runs: Sequence[NewRun]
    ) -> list[Handle[Any]]:
        """Insert runs through the user's own connection; until it commits nobody knows whether they will be there."""
        store = await self._open_here()
        doors = self._transactions_beside() if store is None else store.transactions
        # In a synchronous program the connection belongs to the thread that waits for us, and is used there.
        caller = caller_thread.get()
        borrowed = borrow(tx) if caller is None else await caller(lambda: borrow(tx))
        check_kind(doors.place, borrowed)
        if caller is not None and borrowed.is_async:
            raise must_be_awaited(borrowed.driver)

        async def perform() -> list[Started]:
            work = await doors.starting(runs)
            return await (borrowed.perform_async(work) if caller is None else caller(lambda: borrowed.perform(work)))

        try:
            started = await perform()
        except StoreOutdatedError:
            if store is not None or getattr(tx, "in_transaction", False):
                raise
            async with self._writing():
                pass  # it is made or upgraded by whoever opens it to write, and nobody has yet
            started = await perform()
        handles = []
        for workflow, run in zip(workflows, started, strict=True):
            handle: Handle[Any] = Handle(self, run.id, workflow, None if run.new else run.num)
            handle.pending = run.new
            handles.append(handle)
        return handles

    def _check_schedules(self) -> None:
        """Refuse what would be refused if somebody started it: for these nobody is there to hear it later."""
        for workflow in self._registry.workflows.values():
            if workflow.schedule is not None:
                workflow.scheduled_input()
                self.check_code(workflow)

    def check_code(self, workflow: Workflow[..., Any]) -> None:
        """Look for clocks, chance and I/O in the workflow's code, once, before its first start."""
        if workflow.name in self._scanned:
            return
        for signature in self._registry.signatures():
            signature.check()  # of those that named what stood further down in the module
        found = scan(workflow.plain, allow=workflow.allow)
        for warning in found.warnings:
            warnings.warn(warning, stacklevel=5)
        if found.errors:
            raise ImpureWorkflowError(workflow.name, found.errors)
        self._scanned.add(workflow.name)

    async def result(self, handle: Handle[T], timeout: Duration | None, *, held_too: bool = False) -> T:
        """Wait for a run's end and give its result; `held_too`: raise RunHeld when it is held."""
        if timeout is None:
            return _read(handle, await self._ending(handle, held_too=held_too))
        async with asyncio.timeout(to_micros(timeout, what="the timeout of result()") / SECOND):
            return _read(handle, await self._ending(handle, held_too=held_too))

    async def status(self, id: str) -> RunStatus:
        """Say how a run stands."""
        return status_of(await self.record(id))

    async def explain(self, id: str) -> Explanation:
        """Say why a run stands as it does."""
        return explain(await self.record(id))

    async def timeline(self, id: str) -> list[TimelineEvent]:
        """Give what has happened to a run."""
        return timeline_of(await self.record(id, earlier=True))

    async def graph(self, id: str) -> Graph:
        """Give which calls of a run waited for which."""
        return graph_in(self._registry, await self.record(id))

    async def logs(self, id: str) -> list[AttemptLog]:
        """Give what the attempts of a run have logged."""
        self._check_id(id)
        async with self._reading() as client:
            if await client.find(self.namespace, id) is None:
                raise RunNotFound(id, self.namespace)
            return [log_shown(log) for log in await client.logs(self.namespace, id)]

    async def runs(
        self, status: str | None, health: str | None, workflow: str | None, tags: Sequence[str]
    ) -> AsyncIterator[Handle[Any]]:
        """Find runs, newest first: page by page, so that those who find many need no memory for all."""
        search, before = searched(status, health, workflow, tags), None
        while True:
            async with self._reading() as client:
                rows = await search.page(client, self.namespace, before, PAGE)
                found = [row for row in rows if await search.means(client, row)]
            for row in found:
                yield Handle(self, row.id, self._registry.find(row.workflow, row.version), row.num)
            if len(rows) < PAGE:
                return
            before = place_of(rows[-1])

    async def inbox(self) -> list[InboxItem]:
        """Give what waits for a person, oldest first: questions, and calls that only a person moves."""
        async with self._reading() as client:
            return [inbox_item(asked) for asked in await client.inbox(self.namespace, EVERY)]

    async def gates(self) -> list[GateRow]:
        """Give all gates, by name."""
        async with self._reading() as client:
            return await client.gates(self.namespace)

    async def order_gate(self, name: str, act: GateAct, *, by: str, reason: str = "") -> None:
        """Do what a person wants of a gate; durable when this returns."""
        order = GateOrder(check_gate(name, act), act, check_name(by), reason and check_reason(reason))
        if not await self.write(lambda client: client.order_gate(self.namespace, order)):
            known = did_you_mean(name, [gate.name for gate in await self.gates()])
            raise InvalidOptionError(
                f"there is no gate {name!r}{known} (that of a limit is there from the first call on that must pass it,"
                " another one while it is paused)"
            )

    async def incidents(self, *, resolved: bool = False) -> list[Incident]:
        """Give the incidents that are open, newest first; with those that are resolved, if asked for."""
        async with self._reading() as client:
            return [incident_of(row) for row in await client.incidents(self.namespace, EVERY, resolved=resolved)]

    async def advised(self, policies: Mapping[str, Policy]) -> list[Suggestion]:
        """Say which budgets the history of steps speaks for."""
        from watchbill.app.advising import advised  # and what it is computed by: few ask

        async with self._reading() as client:
            return await advised(client, self.namespace, policies)

    async def supervision(self) -> SupervisionStatus:
        """Say who watches what, how late, and what a self-audit has found."""
        async with self._reading() as client:
            return supervision_of(await client.checkup(self.namespace, 1))

    async def metrics(self, within: Duration) -> Metrics:
        """Say how runs went within a time."""
        span = to_micros(within, what="the time of metrics()", at_least=1)
        async with self._reading() as client:
            return await measured(client, self.namespace, span)

    async def agents(self) -> list[AgentStatus]:
        """Give the agents, those at work first."""
        async with self._reading() as client:
            return [agent_status(row) for row in await client.agents(self.namespace)]

    async def order_agent(
        self, named: str, *, wish: str | None = None, needs: str | None = None, by: str = "client", reason: str = ""
    ) -> str:
        """Say what an agent should do, or has; durable when this returns. Gives its id."""
        async with self._reading() as client:
            agent = chosen_agent(await client.agents(self.namespace), named)
        wished = None if wish is None else Wish[wish.upper()]
        have = None if needs is None else written(parse_needs(needs))
        act = "needs" if wished is None else "release" if wished is Wish.NONE else wished.name.lower()
        entry = LogEntry(
            "agent", agent.name, act, check_name(by), reason and check_reason(reason), ", ".join(have or ())
        )
        if not await self.write(lambda client: client.order_agent(self.namespace, agent.id, wished, have, entry)):
            raise InvalidOptionError(f"agent {named!r} has just left")
        return f"{agent.id:x}"

    async def backlog(self) -> list[QueueDepth]:
        """Give what waits for agents, queue by queue."""
        async with self._reading() as client:
            return await client.backlog(self.namespace)

    async def delete(self, id: str, reason: str = "", by: str = "client") -> None:
        """Delete a run that has ended, with all the runs under it; the audit log keeps who did it, when and why."""
        record = await self.record(id)
        run = record.run
        if run.parent is not None:
            raise InvalidOptionError(
                f"run {id!r} was started by another one, and goes with it: delete the run at the top of its tree"
            )
        order = LogEntry("run", id, "delete", by, reason, run.workflow)
        deleted = await self.write(lambda client: client.delete(run.num, DELETED_AT_ONCE, order))
        while deleted is Deleted.MORE:
            deleted = await self.write(lambda client: client.delete(run.num, DELETED_AT_ONCE))
        if deleted is Deleted.LIVE:
            raise RunLive(id)
        self._events.tell([Event(RUN_DELETED, record.now, by, id, cause=by, note=reason)])

    async def tell(self, id: str, kind: FactKind, body: object, ref: str | None = None, by: str = "client") -> None:
        """Tell a run something; durable when this returns. With the same reference it is told once."""
        self._check_id(id)
        told_as = encode(body, what=f"what is told to run {id!r}", sealed=self._seal is not None)
        reference = unique_text(self.env) if ref is None else check_reference(ref)
        fact = NewFact(self.namespace, id, kind, reference, by, told_as)
        (told,) = await self.write(lambda client: client.tell([fact]))
        if told is Told.UNKNOWN:
            raise RunNotFound(id, self.namespace)
        if told is Told.ENDED and kind is not FactKind.CANCEL:
            raise RunEnded(id, kind.value)

    async def published(self, id: str) -> dict[str, Any]:
        """Give what a run has published."""
        published = (await self.record(id)).run.published
        check_open(id, published)
        return {} if published is None else cast(dict[str, Any], plain(published))

    async def retry(self, handle: Handle[T], step: str | None, reason: str) -> Handle[T]:
        """Try again what failed or is held: in place while the run lives, else in a copy of it."""
        record = await self._readable(handle.id)
        if not record.run.status.terminal:
            if step is not None:
                check_retried(record, step, self._registry.steps)
            await self.tell(handle.id, FactKind.RETRY, RetryAsked(step, reason), by=handle.by)
            return handle
        # What an incident is about goes on once, by whoever is first: that may be who retries all of its runs.
        copy = await self._copy(record, copies.failed(record, step), handle.workflow, {}, member=record.incident)
        if reason:
            with contextlib.suppress(RunEnded):  # it may have done so already
                await self.tell(copy.id, FactKind.RETRY, RetryAsked(None, reason), by=handle.by)
        return copy

    async def rewind(self, handle: Handle[T], to: str) -> Handle[T]:
        """Do a call, and all that came after it, again: in place while the run lives, else in a copy of it."""
        record = await self._readable(handle.id)
        if record.run.status.terminal:
            return await self._copy(record, copies.before(record, to), handle.workflow, {})
        copies.check_call(record, to)
        if record.run.status is RunState.UNDOING:
            raise WatchbillError(
                f"run {handle.id!r} is being undone: wait for its end, then rewind() makes a new run of it"
            )
        if (why := why_stopping(record.journal)) is not None:
            raise WatchbillError(
                f"run {handle.id!r} is being stopped: {why}, and a rewind would take that back. Wait for its end (one"
                " that is held ends by cancel()), then rewind() makes a new run of it"
            )
        await self.tell(handle.id, FactKind.REWIND, to, by=handle.by)
        return handle

    async def fork(self, handle: Handle[T], after: str, changes: dict[str, Any]) -> Handle[T]:
        """Make a copy of a run that has seen everything up to a call's outcome."""
        record = await self._readable(handle.id)
        return await self._copy(record, copies.after(record, after), handle.workflow, changes)

    async def _readable(self, id: str) -> Record:
        """Read a run of which nothing that is copied is sealed for us."""
        record = await self.record(id)
        check_open(id, record.run.input, *(entry.body for entry in record.journal))
        return record

    async def _copy(
        self,
        record: Record,
        origin: copies.Origin,
        workflow: Workflow[..., T] | None,
        changes: dict[str, Any],
        member: int | None = None,
    ) -> Handle[T]:
        run, part = record.run, origin.part
        if changes:
            code = self._registry.find(part.workflow, part.version)
            if code is None:
                raise WatchbillError(
                    f"arguments of workflow {part.workflow!r} version {part.version} cannot be changed here:"
                    " its code is not in this App"
                )
            part = part._replace(input=code.signature.with_changes(part.input, changes))
        n, redrawn = 2, 0
        num = self.env.new_id()
        while True:
            new = copies.copy_of(record, part, num, n)
            if not is_id(new.id):
                raise WatchbillError(f"run {run.id!r} has too long an id for a copy: {new.id!r}")
            first = copies.beginning(record, part, num)
            copying = partial(_copied, new, run.num, origin.kept, loose=bool(changes), first=first, member=member)
            try:
                became = await self.write(copying)
            except IdTakenError:
                if redrawn == REDRAWN:
                    raise
                redrawn += 1
                self.env.renumber()
                num = self.env.new_id()
                continue
            match became:
                case Copied.MADE:
                    return Handle(self, new.id, workflow, num)
                case Copied.TAKEN:
                    n += 1
                case Copied.GONE:
                    await self.record(run.id)  # it may have been deleted meanwhile
                    raise WatchbillError(
                        f"somebody has seen to run {run.id!r} meanwhile, with all of its incident: `watchbill run list`"
                        " shows as which run it goes on, if it does; retry it once more to have another one"
                    )

    async def record(self, id: str, *, earlier: bool = False) -> Record:
        """Read all that is stored about a run; `earlier`: also the parts of its journal before the last one."""
        self._check_id(id)
        async with self._reading() as client:
            record = await client.record(self.namespace, id, earlier=earlier)
        if record is None:
            raise RunNotFound(id, self.namespace)
        return record

    async def close(self) -> None:
        """Let go of a store that has stayed open."""
        if self.loop is None and self._store is not None:
            store, self._store = self._store, None
            await store.close()
        here = asyncio.get_running_loop()
        opened, self._opened = dict(self._opened), WeakKeyDictionary()
        for loop, opening in opened.items():
            if loop is here:
                await _close(opening)
            elif loop.is_running():  # of app.sync, on its own thread
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_close(opening), loop))
        visits, self._visits = self._visits, {}
        for loop, visit in visits.items():
            if loop is here:
                await visit.close()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(visit.close(), loop))

    def _check_id(self, id: str) -> None:
        # No store is asked for what it cannot have: not every one has a way to write such a text.
        if not is_id(id):
            raise RunNotFound(id, self.namespace)

    async def _find(self, handle: Handle[T]) -> int:
        self._check_id(handle.id)
        async with self._reading() as client:
            row = await client.find(self.namespace, handle.id)
        if row is None:
            raise RunNotFound(handle.id, self.namespace)
        handle.num = row.num
        return row.num

    async def _await_commit(self, handle: Handle[T]) -> int:
        """Wait until a run is there that was started in a user's transaction, however long that takes."""
        never = asyncio.Event()
        while True:
            with contextlib.suppress(RunNotFound, StoreUnreachableError):
                return await self._find(handle)
            await self.env.wait(never, POLL)

    async def _ending(self, handle: Handle[T], *, held_too: bool) -> Ending:
        """Wait for a run's end: told by events where the rooms are, by looking again beside their process."""
        self._check_place()
        num = handle.num
        if num is None:
            num = await (self._await_commit(handle) if handle.pending else self._find(handle))
        if self._waiting is not None:
            told = await self._waiting.ending(handle.id, num, held_too=held_too)
            if told is not None:
                return told
        never = asyncio.Event()
        while True:
            with contextlib.suppress(StoreUnreachableError):
                async with self._reading() as client:
                    endings = await client.endings([num])
                if not endings:
                    raise RunNotFound(handle.id, self.namespace)  # it was deleted
                [ending] = endings
                if ending.status.terminal or (held_too and ending.held is not None):
                    return ending
            await self.env.wait(never, POLL)

    def _check_place(self) -> None:
        """Refuse to wait where the rooms cannot answer: it would stop them."""
        if current() is not None:
            raise WatchbillError("an App and its handles cannot be used inside a workflow: put it in a step")
        if self.loop is not None and self.loop is not asyncio.get_running_loop():
            raise WatchbillError("the rooms of this App are open on another event loop: use app.sync from here")

    # --- the store, for as long as it is needed

    @contextlib.asynccontextmanager
    async def _owned(self) -> AsyncIterator[Store]:
        memory = is_memory(self.url)
        store = self._store = await self._kept() if memory else self._sealed(await open_to_own(self.url, self.env))
        try:
            yield store
        finally:
            if not memory:
                self._store = None
                await store.close()

    # With keys, every door of this process goes through one of these; the owner hands a guest's sealed bodies on.

    def _sealed(self, store: Store) -> Store:
        return store if self._seal is None else self._seal.store(store)

    def _open_reader(self) -> Reader:
        reader = open_reader(self.url, self.env)
        return reader if self._seal is None else self._seal.reader(reader)

    def _transactions_beside(self) -> Transactions:
        beside = transactions_beside(self.url, self.env)
        return beside if self._seal is None else self._seal.transactions(beside)

    async def _open_here(self) -> Store | None:
        """Give the store that is open here, or stays open; None for a file, which another process may own."""
        self._check_place()
        return self._store if self._store is not None or is_file(self.url) else await self._kept()

    async def _kept(self) -> Store:
        """Give the store that stays open; whoever needs it first opens it for all."""
        if self._store is not None:
            return self._store
        loop = asyncio.get_running_loop()
        opening = self._opened.get(loop)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._opened[loop] = loop.create_task(self._open_to_keep())
        return await asyncio.shield(opening)

    async def _open_to_keep(self) -> Store:
        store = self._sealed(await self._open())
        if is_memory(self.url):
            self._store = store
        return store

    async def _open(self) -> Store:
        return await open_store(self.url, self.env)

    async def read(self, work: Callable[[ClientStore], Awaitable[T]]) -> T:
        """Do what only reads."""
        async with self._reading() as client:
            return await work(client)

    async def write(self, work: Callable[[ClientStore], Awaitable[T]]) -> T:
        """Do what may be repeated safely, until the store answers."""

        async def once() -> T:
            async with self._writing() as client:
                return await work(client)

        return await self._insist(once)

    async def _insist(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what may be repeated safely until the store answers, within patience."""
        since = pause = None
        while True:
            try:
                return await work()
            except StoreUnreachableError as error:
                boot = self.env.clock.boot()
                patience = DISK_PATIENCE if isinstance(error, StoreFailingError) else PATIENCE
                since = since if since is not None else boot
                if boot >= since + patience:
                    raise
                pause = FIRST_PAUSE if pause is None else min(2 * pause, LONGEST_PAUSE)
                await self.env.wait(asyncio.Event(), pause)

    @contextlib.asynccontextmanager
    async def _writing(self) -> AsyncIterator[ClientStore]:
        """Give the doors for one write: through a file's owner, or as its owner, but then only for that long."""
        if (store := await self._open_here()) is not None:
            yield store.client
            return
        async with self._visit().doors() as client:
            yield client if self._seal is None else self._seal.client(client)

    def _visit(self) -> Visit:
        """Give this event loop's way to the file."""
        loop = asyncio.get_running_loop()
        if loop not in self._visits:
            for ended in [loop for loop in tuple(self._visits) if loop.is_closed()]:
                self._visits.pop(ended, None)  # other threads may be here at the same time
            self._visits[loop] = Visit(self.url, self.env)
        return self._visits[loop]

    @contextlib.asynccontextmanager
    async def _reading(self) -> AsyncIterator[ClientStore]:
        """Give the doors for reading: of the store that is open here, or of the file, beside its owner."""
        if (store := await self._open_here()) is not None:
            yield store.client
            return
        reader = self._open_reader()
        try:
            yield reader
        finally:
            await reader.close()


def _driven_name(code: str, region: str) -> str:
    """Name what an owner drives, for its guests: runs of a region are driven only where that is served."""
    return f"{code} in {region}" if region else code


async def _copied(
    run: NewRun,
    source: int,
    kept: Sequence[int],
    client: ClientStore,
    *,
    loose: bool,
    first: JournalRow | None,
    member: int | None,
) -> Copied:
    return await client.copy(run, source, kept, loose=loose, first=first, member=member)


def check_reference(ref: object) -> str:
    """Refuse what no message can be known by."""
    if not isinstance(ref, str) or not 1 <= len(ref) <= LONGEST_REFERENCE or not ref.isprintable():
        raise InvalidOptionError(f"the id of a message is text of 1-{LONGEST_REFERENCE} characters, got {ref!r:.240}")
    return ref


def check_open(id: str, *bodies: bytes | None) -> None:
    """Refuse to read what is sealed with a key that is not here."""
    for body in bodies:
        if body is not None and is_sealed(body):
            raise SealedError(id, why_sealed(body))


async def _close(opening: "asyncio.Task[Store]") -> None:
    with contextlib.suppress(StoreError):  # it could not be opened: there is nothing to close
        await (await opening).close()


def _read(handle: Handle[T], ending: Ending) -> T:
    check_open(handle.id, ending.body)
    match ending.status:
        case RunState.COMPLETED:
            workflow = handle.workflow
            value = workflow.signature.decode_result(ending.body) if workflow is not None else plain(ending.body)
            return cast(T, value)  # as the workflow's annotation says
        case RunState.CANCELLED | RunState.FAILED | RunState.UNDONE | RunState.UNDO_FAILED:
            raise error_of(handle.id, ending.status, ending.body)
        case _:
            raise RunHeld(handle.id, ending.held or ending.status.word)
