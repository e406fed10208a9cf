"""Guest: a process beside the owner of a file opens the doors of its store through the owner's socket."""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.env import Env, FramedWire
from watchbill.errors import StoreError, StoreOwnedError, StoreUnreachableError
from watchbill.store import wire
from watchbill.store.hints import Hints
from watchbill.store.owner import Owner
from watchbill.store.protocol import ClientStore, Hint
from watchbill.store.wire import ConditionStore, Door, Hello, HintStore, Request, Welcome

T = TypeVar("T")

BUFFER: Final = 1024 * 1024
LOOK: Final = 1.0  # seconds without an answer after which a guest looks whether the owner is dead
ANSWER: Final[Micros] = 30 * SECOND  # a living owner that does not answer for so long is frozen, or its loop blocked


class Guest:
    """A connection to the owner; many doors may be under way at once. It belongs to one event loop."""

    def __init__(self, url: str, env: Env, owner: Owner, line: FramedWire) -> None:
        self.gone = asyncio.Event()
        self._url = url
        self._env = env
        self._owner = owner
        self._line = line
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[wire.Answer | None]] = {}
        self._hearing: asyncio.Task[None] | None = None
        self._hints = Hints()
        self._asking: dict[Hint, asyncio.Task[None]] = {}  # for hints, each kind once
        self._welcome = Welcome(0, "")
        self._client = cast(ClientStore, GuestDoors(self, "client"))  # as the protocol's annotations say
        self._wants = cast(HintStore, GuestDoors(self, "hints"))
        self.condition = cast(ConditionStore, GuestDoors(self, "condition"))

    @property
    def client(self) -> ClientStore:
        """For handles and commands."""
        return self._client

    def knows(self, namespace: str, workflow: str) -> bool:
        """Say whether the owner drives runs of this workflow."""
        return self._welcome.namespace == namespace and workflow in self._welcome.workflows

    def listen(self, whom: Hint, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` whenever the owner's store gives that hint, soon from now on; gives the function that ends it."""
        if whom not in self._asking:
            self._asking[whom] = asyncio.get_running_loop().create_task(self._ask_for(whom))
        return self._hints.listen(whom, wake)

    def refusal(self, why: str) -> StoreOwnedError:
        """Give the error that says why the owner cannot help."""
        return StoreOwnedError(self._url, self._owner.pid, self._owner.address, why)

    async def introduce(self) -> None:
        """Say hello; raises StoreOwnedError when the owner cannot take this guest in."""
        try:
            await self._line.send(wire.encode(Hello(wire.PROTOCOL, wire.our_version())))
            self._welcome = wire.decode_welcome(await self._patiently(self._line.receive()))
        except OSError as error:
            raise self._unanswered("hung up") from error
        except (ValueError, msgspec.MsgspecError) as error:
            raise self.refusal("what listens there does not speak like an owner") from error
        if self._welcome.refused:
            raise self.refusal(self._welcome.refused)
        self._hearing = asyncio.get_running_loop().create_task(self._hear())

    async def call(self, door: Door, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - the door's
        """Open a door at the owner's."""
        number = next(self._numbers)
        request = wire.encode(Request(number, door.name, door.arguments(*args, **kwargs)))
        if len(request) > wire.LONGEST:
            raise StoreError(f"a request of {len(request)} bytes is too long for the owner of store {self._url!r}")
        if self.gone.is_set():
            raise self._unanswered("is gone")
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._line.send(request)
            answer = await self._patiently(future)
        except OSError as error:
            raise self._unanswered("hung up") from error
        finally:
            del self._asked[number]
        if answer.trouble is not None:
            raise wire.error_of(answer.trouble)
        return door.read_value(answer.value)

    async def close(self) -> None:
        """Hang up."""
        self._hang_up()
        if self._hearing is not None:
            await asyncio.wait({self._hearing, *self._asking.values()})

    async def _ask_for(self, whom: Hint) -> None:
        with contextlib.suppress(StoreUnreachableError):  # losing a connection loses its hints
            await self._wants.listen(whom)

    async def _hear(self) -> None:
        try:
            while (said := await self._line.receive()) is not None:
                answer = wire.decode_answer(said)
                if answer.number == wire.HINTED:
                    self._hints.give(wire.decode_hint(answer.value))
                    continue
                future = self._asked.get(answer.number)
                if future is not None and not future.done():  # else nobody waits for it any more
                    future.set_result(answer)
        except (ValueError, msgspec.MsgspecError):
            pass  # it speaks another language now: there is nothing more to hear
        except asyncio.CancelledError:
            self._hang_up()
            raise
        self._hang_up()

    async def _patiently(self, coming: Awaitable[T | None]) -> T:
        """Wait for what the owner says; raises StoreUnreachableError when it is gone, or silent for too long.

        A forked child of a dead owner keeps its connections open, so who hears nothing looks whether the owner lives.
        """
        waiting = asyncio.ensure_future(coming)
        until = self._env.clock.boot() + ANSWER
        why = "does not answer"
        while self._env.clock.boot() < until:
            if (await asyncio.wait({waiting}, timeout=LOOK))[0]:
                said = waiting.result()
                if said is None:
                    raise self._unanswered("hung up")
                return said
            if self._owner.dead:
                why = "died"
                break
        waiting.cancel()
        self._hang_up()
        raise self._unanswered(why)

    def _hang_up(self) -> None:
        self.gone.set()
        self._line.hang_up()
        for future in self._asked.values():
            if not future.done():
                future.set_result(None)

    def _unanswered(self, what: str) -> StoreUnreachableError:
        return StoreUnreachableError(
            f"store {self._url!r} is owned by process {self._owner.pid}, which {what}: nobody knows whether it has done"
            " what was asked; ask again"
        )


class Caller(Protocol):
    """Who can open a door at the owner's."""

    async def call(self, door: Door, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - the door's
        """Open it."""
        ...


class GuestDoors:
    """A set of doors, each of which is opened at the owner's; they have the signatures of their protocol."""

    def __init__(self, caller: Caller, name: str) -> None:
        self._caller = caller
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        """Give a door."""
        door = wire.served_doors().get(f"{self._name}.{method}")
        if door is None:
            raise AttributeError(method)

        async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the door's signature says
            return await self._caller.call(door, args, kwargs)

        return call


async def visit(url: str, env: Env, owner: Owner) -> Guest | None:
    """Go to the owner that is named, and say hello; None when nobody is there: it may have died, or be closing."""
    if owner.address is None or owner.dead:
        return None
    try:
        reader, writer = await asyncio.open_unix_connection(owner.address, limit=BUFFER)
    except PermissionError as error:
        why = f"it serves processes of its own user and of root: {error.strerror}"
        raise StoreOwnedError(url, owner.pid, owner.address, why) from error
    except OSError:
        return None
    guest = Guest(url, env, owner, FramedWire(reader, writer, longest=wire.LONGEST))
    try:
        await guest.introduce()
    except BaseException:
        await guest.close()
        raise
    return guest
