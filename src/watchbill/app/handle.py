"""Handle: a run, from outside."""

from __future__ import annotations  # what is only given back is not imported: most programs never ask for it

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from watchbill.app.status import AttemptLog, Explanation, RunStatus, TimelineEvent
from watchbill.env import Env
from watchbill.errors import InvalidOptionError
from watchbill.flow.language import check_topic
from watchbill.flow.workflows import Workflow
from watchbill.model.duration import Duration
from watchbill.model.facts import FactKind
from watchbill.model.pausing import PauseOrder
from watchbill.model.run import NewRun

if TYPE_CHECKING:
    from watchbill.app.agents import AgentStatus
    from watchbill.app.supervision import SupervisionStatus
    from watchbill.model.gate import GateRow
    from watchbill.model.graph import Graph
    from watchbill.model.incident import Incident
    from watchbill.model.policy import Policy
    from watchbill.model.question import InboxItem
    from watchbill.model.report_card import Metrics
    from watchbill.model.suggestion import Suggestion

T = TypeVar("T")


class Client(Protocol):
    """What App and handles need of the hall, which is imported only when it is needed."""

    env: Env
    namespace: str
    loop: asyncio.AbstractEventLoop | None

    def rooms(
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
    ) -> AbstractAsyncContextManager[None]:
        """Open the rooms."""
        ...

    async def run(
        self, workflow: Workflow[..., T], run: NewRun, rooms: Callable[[], AbstractAsyncContextManager[object]]
    ) -> T:
        """Run to the end."""
        ...

    async def start(self, asked: Sequence[tuple[Workflow[..., Any], NewRun]], tx: object = None) -> list[Handle[Any]]:
        """Insert runs, all or none, and give their handles; `tx`: in the user's own transaction."""
        ...

    def check_code(self, workflow: Workflow[..., Any]) -> None:
        """Look for clocks, chance and I/O in the workflow's code, once."""
        ...

    async def result(self, handle: Handle[T], timeout: Duration | None) -> T:
        """Wait for a run's end."""
        ...

    async def read(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Do what only reads, with the client's doors."""
        ...

    async def write(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Do what may be repeated safely, with the client's doors."""
        ...

    async def close(self) -> None:
        """Let go of what is open."""
        ...

    async def status(self, id: str) -> RunStatus:
        """Say how a run stands."""
        ...

    async def tell(self, id: str, kind: FactKind, body: object, ref: str | None = None, by: str = "client") -> None:
        """Tell a run something."""
        ...

    async def published(self, id: str) -> dict[str, Any]:
        """Give what a run has published."""
        ...

    async def explain(self, id: str) -> Explanation:
        """Say why a run stands as it does."""
        ...

    async def timeline(self, id: str) -> list[TimelineEvent]:
        """Give what has happened to a run."""
        ...

    async def graph(self, id: str) -> Graph:
        """Give which calls of a run waited for which."""
        ...

    async def logs(self, id: str) -> list[AttemptLog]:
        """Give what the attempts of a run have logged."""
        ...

    def runs(
        self, status: str | None, health: str | None, workflow: str | None, tags: Sequence[str]
    ) -> AsyncIterator[Handle[Any]]:
        """Find runs, newest first."""
        ...

    async def agents(self) -> list[AgentStatus]:
        """Give the agents."""
        ...

    async def supervision(self) -> SupervisionStatus:
        """Say who watches what, and how late."""
        ...

    async def inbox(self) -> list[InboxItem]:
        """Give what waits for a person."""
        ...

    async def gates(self) -> list[GateRow]:
        """Give all gates."""
        ...

    async def advised(self, policies: Mapping[str, Policy]) -> list[Suggestion]:
        """Say which budgets the history of steps speaks for."""
        ...

    async def metrics(self, within: Duration) -> Metrics:
        """Say how runs went within a time."""
        ...

    async def incidents(self, *, resolved: bool = False) -> list[Incident]:
        """Give the incidents that are open, or all."""
        ...

    async def retry(self, handle: Handle[T], step: str | None, reason: str) -> Handle[T]:
        """Try again what failed or is held."""
        ...

    async def rewind(self, handle: Handle[T], to: str) -> Handle[T]:
        """Do a call, and all that came after it, again."""
        ...

    async def fork(self, handle: Handle[T], after: str, changes: dict[str, Any]) -> Handle[T]:
        """Make a copy of a run that has seen everything up to a call's outcome."""
        ...


class Handle(Generic[T]):
    """A run: wait for it, look at it, cancel it."""

    def __init__(self, client: Client, id: str, workflow: Workflow[..., T] | None, num: int | None = None) -> None:
        self.id = id
        self.workflow = workflow
        self.num = num  # the run's number, once it is known
        self.pending = (
            False  # the run may not be there yet: its user's transaction, or the run before it, is still open
        )
        self.by = "client"  # who is written down as having asked
        self._client = client

    def __repr__(self) -> str:
        """Name the run."""
        return f"<Handle {self.id}>"

    async def result(self, timeout: Duration | None = None) -> T:
        """Wait for the end and give the result; raises RunFailed, RunCancelled, or TimeoutError (the run goes on)."""
        return await self._client.result(self, timeout)

    async def status(self) -> RunStatus:
        """Say how the run stands."""
        return await self._client.status(self.id)

    async def cancel(self, reason: str = "") -> None:
        """Ask for the run to be cancelled: durable when this returns; CancelledError is raised where it waits."""
        await self._client.tell(self.id, FactKind.CANCEL, str(reason), by=self.by)

    async def pause(self, reason: str = "", children: bool = True) -> None:
        """Let nothing new start, also in all runs below it: what runs is finished, time and messages go on.

        A paused run does not complete: its outcome waits for a resume. `children=False`: the runs below it go on.
        """
        if not isinstance(children, bool):
            raise InvalidOptionError(f"pause(children=) is True or False, got {children!r:.240}")
        await self._client.tell(self.id, FactKind.PAUSE, PauseOrder(str(reason), children), by=self.by)

    async def resume(self) -> None:
        """Let a paused run go on, and the runs below it that were paused with it."""
        await self._client.tell(self.id, FactKind.RESUME, PauseOrder(), by=self.by)

    async def extend(self, by: Duration, *, reason: str, call: str | None = None) -> None:
        """Give the run more time before its deadline, or with `call` that call before its timeout."""
        from watchbill.app.extending import extend  # only where somebody wants it

        await extend(self._client, self.id, by, call=call, reason=reason, who=self.by)

    async def send(self, topic: str, message: object, id: str | None = None) -> None:
        """Send a message, which `receive(topic, ...)` gets; with the same id it is the same message, sent once."""
        await self._client.tell(self.id, FactKind.SEND, (check_topic(topic), message), ref=id, by=self.by)

    async def published(self) -> dict[str, Any]:
        """Give what the run has published, by key."""
        return await self._client.published(self.id)

    async def retry(self, step: str | None = None, *, reason: str = "") -> Handle[T]:
        """Try again what failed or is held; a run that has ended is gone on with as a new one, `<id>~2`."""
        return await self._client.retry(self, step, reason)

    async def rewind(self, to: str) -> Handle[T]:
        """Do a call, and all the workflow saw after it, again: in place, or of a run that has ended as a new one."""
        return await self._client.rewind(self, to)

    async def fork(self, after: str, **changes: object) -> Handle[T]:
        """Make a new run that has seen everything up to this call's outcome, with arguments changed by name."""
        return await self._client.fork(self, after, changes)

    async def explain(self) -> Explanation:
        """Say what the run waits for, why, since when, and what will happen next."""
        return await self._client.explain(self.id)

    async def timeline(self) -> list[TimelineEvent]:
        """Give what has happened to the run, in order."""
        return await self._client.timeline(self.id)

    async def logs(self) -> list[AttemptLog]:
        """Give what attempts that agents ran have logged and printed, the last of it; in order of their ends."""
        return await self._client.logs(self.id)

    async def graph(self) -> Graph:
        """Give the calls of the run, and which of them waited for which: `.nodes`, `.edges`; needs its code."""
        return await self._client.graph(self.id)
