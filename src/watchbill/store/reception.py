"""Reception: the owner of a file serves the doors of its store to guests, who are other processes, over a socket.

Only processes of the same user, or of root, are let in. Whatever a guest says or leaves unsaid concerns that guest
alone: garbage, a frame without end or a door that is not there are refused, and who dies in the middle is forgotten;
a door that has begun goes on to its end, which is one commit, as if its answer had been lost. Who does not read its
answers is not listened to, and gets no hints, until it does.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from watchbill.clock import SECOND, Micros
from watchbill.env import Env, FramedWire, peer_user
from watchbill.errors import StoreError, StoreReplacedError
from watchbill.events import log
from watchbill.forks import FORKS, let_go
from watchbill.store import wire
from watchbill.store.presence import Presence
from watchbill.store.protocol import Store
from watchbill.store.sockets import bind_near, remove_socket
from watchbill.store.visitor import Visitor
from watchbill.store.wire import Answer, Hello, Request, Welcome

LOOK: Final[Micros] = SECOND  # somebody may have deleted the socket's file: after this, guests find a new one
HELLO: Final = 10.0  # seconds that a guest may take for its first word
LONGEST_HELLO: Final = 4_096  # bytes
FAREWELL: Final = 2.0  # seconds in which guests must have taken their last answers when the owner closes
BUFFER: Final = 1024 * 1024
KNOCKING: Final = 1_000  # guests that may knock at the same moment, as far as the kernel allows
AT_ONCE: Final = 1_000  # requests of one guest that may be under way; beyond, it is not listened to for a while


class Driven(NamedTuple):
    """What the scheduler in the owner's process drives."""

    namespace: str
    workflows: tuple[str, ...]


class OwnedStore(Store, Protocol):
    """The store of a file, as its owner has it."""

    presence: Presence

    @property
    def lost(self) -> StoreReplacedError | None:
        """The reason why this process can no longer serve the file, once that is known."""
        ...

    def announce(self, address: str | None) -> None:
        """Write down where guests are served, or that they are not."""
        ...


class Reception:
    """Listens near the file, and serves whoever comes in."""

    def __init__(self, env: Env, store: OwnedStore, database: Path, *, driven: Callable[[], Driven]) -> None:
        self._env = env
        self._store = store
        self._database = database
        self._driven = driven
        self._doors = wire.served_doors()
        self._address = ""
        self._socket = (0, 0)  # device and inode of its file
        self._server: asyncio.Server | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._closing = False
        self._listening: set[asyncio.Task[None]] = set()  # to guests, or about to listen anew
        self._answering: set[asyncio.Task[None]] = set()
        self._guests: set[FramedWire] = set()
        FORKS.when_forked(self._forget)

    def _forget(self) -> None:
        """Stop to listen in a forked child: nobody would answer there when the owner has died."""
        for listener in self._server.sockets if self._server is not None else ():
            let_go(listener.fileno())

    async def open(self) -> None:
        """Listen, and write down where; without a socket the rooms work all the same, for this process alone."""
        try:
            listener = bind_near(self._database)
        except OSError as error:
            log.warning("no other process can write to store %r: no socket can be made: %s", self._store.url, error)
            return
        self._address = listener.getsockname()
        made = os.lstat(self._address)
        self._socket = (made.st_dev, made.st_ino)
        self._server = await asyncio.start_unix_server(self._arrived, sock=listener, limit=BUFFER, backlog=KNOCKING)
        self._store.announce(self._address)
        self._looking = self._env.call_later(LOOK, self._look)

    async def close(self) -> None:
        """Let nobody in any more, answer what was asked, and hang up."""
        self._closing = True
        self._store.announce(None)
        if self._looking is not None:
            self._looking.cancel()
        self._stop_listening()
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)
        if self._answering:
            await asyncio.wait(self._answering, timeout=FAREWELL)
        await asyncio.gather(*(guest.say_goodbye(FAREWELL) for guest in self._guests))

    def _look(self) -> None:
        if self._store.lost is not None:
            self._dismiss()
        elif os.path.exists(self._address):
            self._looking = self._env.call_later(LOOK, self._look)
        else:
            self._stop_listening()
            self._spawn(self._listening, self.open())

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            if self._is_ours():
                remove_socket(self._address)

    def _is_ours(self) -> bool:
        """Tell whether the socket file is the one that was made here: a new owner may have made another one."""
        try:
            found = os.lstat(self._address)
        except OSError:
            return True  # at most its folder is left
        return (found.st_dev, found.st_ino) == self._socket

    def _dismiss(self) -> None:
        """Hang up on all guests without an answer, and let no guest in: they look for the next owner."""
        self._stop_listening()
        for guest in tuple(self._guests):
            guest.hang_up()

    def _spawn(self, among: "set[asyncio.Task[None]]", work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)

    # --- one guest

    def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._spawn(self._listening, self._listen(reader, writer))

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        guest = FramedWire(reader, writer, longest=wire.LONGEST)
        self._guests.add(guest)
        try:
            refused = await self._refusal(FramedWire(reader, writer, longest=LONGEST_HELLO), peer_user(writer))
            driven = self._driven() if not refused else ()
            await guest.send(wire.encode(Welcome(wire.PROTOCOL, wire.our_version(), refused, *driven)))
            if not refused:
                await self._serve(guest)
        except OSError:
            pass  # it is gone
        except Exception as error:  # whatever it said: the others, and the rooms, do not care
            log.warning("store %r sends a guest away, who said %s", self._store.url, error)
        finally:
            if not self._closing:  # else it gets its answers first
                guest.hang_up()
                self._guests.discard(guest)

    async def _refusal(self, guest: FramedWire, user: int | None) -> str:
        """Say why this guest cannot stay, or nothing."""
        try:
            # Heard in any case: whoever closes with something unread takes its own answer back.
            async with asyncio.timeout(HELLO):
                said = await guest.receive()
        except TimeoutError:
            return f"it heard nothing for {HELLO:.0f} s"
        if user not in (None, 0, os.geteuid()):
            return f"it serves processes of its own user ({os.geteuid()}) and of root, not of user {user}"
        try:
            hello = wire.decode_hello(said or b"")
        except msgspec.MsgspecError as error:
            return f"it did not understand: {error}"
        ours = Hello(wire.PROTOCOL, wire.our_version())
        if hello != ours:
            return (
                f"it runs Watchbill {ours.version} (protocol {ours.protocol}), this process {hello.version} (protocol"
                f" {hello.protocol}), and both must be the same to work together"
            )
        return ""

    async def _serve(self, line: FramedWire) -> None:
        free = asyncio.Semaphore(AT_ONCE)
        visitor = Visitor(self._env, self._store, self._store.presence, line)
        try:
            while (said := await line.receive()) is not None:
                request = wire.decode_request(said)
                await free.acquire()
                self._spawn(self._answering, self._answer(visitor, request, free))
        finally:
            visitor.leave()

    async def _answer(self, visitor: Visitor, request: Request, free: asyncio.Semaphore) -> None:
        try:
            answer = await self._open_door(visitor, request)
            if self._store.lost is not None:
                self._dismiss()
                return
            with contextlib.suppress(OSError):  # it is gone: as if the answer had been lost
                await visitor.line.send(answer)
        finally:
            free.release()

    async def _open_door(self, visitor: Visitor, request: Request) -> bytes:
        try:
            value = await self._call(visitor, request)
            answer = wire.encode(Answer(request.number, msgspec.Raw(wire.encode(value))))
            if len(answer) > wire.LONGEST:
                raise StoreError(
                    f"door {request.door!r} gives {len(answer)} bytes, too many for a guest: read the file"
                )
        except Exception as error:
            return wire.encode(Answer(request.number, wire.NOTHING, wire.trouble_of(error)))
        return answer

    async def _call(self, visitor: Visitor, request: Request) -> object:
        door = self._doors.get(request.door)
        if door is None:
            raise StoreError(
                f"store {self._store.url!r} has no door {request.door!r} for guests: run one version of all"
            )
        try:
            arguments = door.read_arguments(request.arguments)
        except msgspec.MsgspecError as error:
            raise StoreError(f"door {request.door!r} cannot be opened like that: {error}") from error
        doors, _, method = request.door.partition(".")
        if doors == "agent":
            visitor.heard(method, arguments)
        opened = visitor if doors == "hints" else getattr(self._store, doors)
        return await getattr(opened, method)(**arguments)
