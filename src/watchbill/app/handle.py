"""Handle: a run, from outside."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Protocol, TypeVar

from watchbill.app.status import RunStatus
from watchbill.env import Env
from watchbill.flow.workflows import Workflow
from watchbill.model.duration import Duration
from watchbill.model.run import NewRun

T = TypeVar("T")


class Client(Protocol):
    """What App and handles need of the hall, which is imported only when it is needed."""

    env: Env
    namespace: str
    loop: asyncio.AbstractEventLoop | None

    def rooms(
        self, *, scheduler: bool, agent: bool, supervisor: bool, slots: int, threads: int
    ) -> AbstractAsyncContextManager[None]:
        """Open the rooms."""
        ...

    async def start(self, asked: Sequence[tuple[Workflow[..., Any], NewRun]], tx: object = None) -> "list[Handle[Any]]":
        """Insert runs, all or none, and give their handles; `tx`: in the user's own transaction."""
        ...

    async def result(self, handle: "Handle[T]", timeout: Duration | None, *, held_too: bool = False) -> T:
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

    async def cancel(self, id: str, reason: str) -> None:
        """Ask for a run to be cancelled."""
        ...


class Handle(Generic[T]):
    """A run: wait for it, look at it, cancel it."""

    def __init__(self, client: Client, id: str, workflow: Workflow[..., T] | None, num: int | None = None) -> None:
        self.id = id
        self.workflow = workflow
        self.num = num  # the run's number, once it is known
        self.pending = False  # started in a user's transaction: the run may not be there yet
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
        await self._client.cancel(self.id, reason)
