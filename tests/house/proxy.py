"""Proxy: a door of the test's own between processes and their store, through which bytes pass, or do not."""

import asyncio
import contextlib
import os
import random
import threading
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.store.postgres import address_of

PIECE = 1 << 16
LONGEST_DELAY: Final = 2.0  # seconds, of each piece on a slow link


class Link(Enum):
    """How a link is."""

    WHOLE = auto()
    CUT = auto()  # connections end, and new ones are refused
    SLOW = auto()  # each piece comes later
    HALF_OPEN = auto()  # whoever connects is never answered, and nothing passes
    DEAF = auto()  # what is said arrives; the answers do not


class _Passage:
    """One connection, from end to end."""

    def __init__(self, *ends: asyncio.StreamWriter) -> None:
        self.broken = False  # bytes are missing: nothing passes any more, or it would be nonsense
        self.ends = ends

    def abort(self) -> None:
        for end in self.ends:
            end.transport.abort()


class Proxy:
    """Passes bytes on in both directions, as well as its link is at the moment; it starts whole."""

    def __init__(self, *, mends: bool = False, seed: int = 0) -> None:
        self._mends = mends
        self._chance = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self._link = Link.WHOLE
        self._passages: set[_Passage] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def cut(self) -> None:
        """Let nothing pass any more; connections stay open at both ends."""
        self._loop.call_soon_threadsafe(self._passing.clear)

    def switch(self, link: Link) -> None:
        """Make the link better or worse; `mends`: what lost bytes ends when it is better, else nobody hears of it."""
        self._loop.call_soon_threadsafe(self._switch, link)

    def close(self) -> None:
        """Close all connections."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        raise NotImplementedError

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise NotImplementedError

    def _switch(self, link: Link) -> None:
        self._link = link
        for passage in tuple(self._passages):
            if link is Link.CUT or (self._mends and passage.broken):
                passage.abort()

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for passage in self._passages:
            passage.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._link is Link.CUT:
            writer.transport.abort()
            return
        there, back = await self._dial()
        passage = _Passage(writer, back)
        self._passages.add(passage)
        going = self._loop.create_task(self._pass(reader, back, passage))
        coming = self._loop.create_task(self._pass(there, writer, passage, answers=True))
        self._tasks |= {going, coming}
        await asyncio.wait({going, coming})
        self._tasks -= {going, coming}
        self._passages.discard(passage)

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, passage: _Passage, *, answers: bool = False
    ) -> None:
        try:
            with contextlib.suppress(OSError):
                while piece := await source.read(PIECE):
                    await self._passing.wait()
                    if self._link is Link.SLOW:
                        await asyncio.sleep(self._chance.uniform(0, LONGEST_DELAY))
                    if self._link is Link.HALF_OPEN or (self._link is Link.DEAF and answers):
                        passage.broken = True
                    if not passage.broken:
                        sink.write(piece)
                        await sink.drain()
            await self._passing.wait()
        finally:
            sink.close()


class PostgresProxy(Proxy):
    """Between one process and its PostgreSQL, by TCP."""

    def __init__(self, url: str, *, mends: bool = False, seed: int = 0) -> None:
        self._address = address_of(url)
        super().__init__(mends=mends, seed=seed)

    @property
    def url(self) -> str:
        """The address of the same store, through here."""
        port: int = self._server.sockets[0].getsockname()[1]
        who = quote(self._address.user or "") + (f":{quote(self._address.password)}" if self._address.password else "")
        return f"postgresql://{who}@127.0.0.1:{port}/{self._address.database}?schema={self._address.schema}"

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._address.host or "localhost", self._address.port or 5432
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)


class SocketProxy(Proxy):
    """In the place of the socket of a file's owner, for whoever comes from now on; who is inside already stays."""

    def __init__(self, socket: Path, *, mends: bool = False, seed: int = 0) -> None:
        self._socket = socket
        self._behind = socket.with_suffix(".behind")
        super().__init__(mends=mends, seed=seed)

    async def _listen(self) -> asyncio.Server:
        before = self._socket.with_suffix(".before")
        server = await asyncio.start_unix_server(self._connected, before)
        os.link(self._socket, self._behind)
        before.rename(self._socket)  # at once: its owner looks whether it is there
        return server

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(self._behind)


@contextlib.contextmanager
def proxy(url: str) -> Iterator[PostgresProxy]:
    """Have a proxy for the length of a trial."""
    there = PostgresProxy(url)
    try:
        yield there
    finally:
        there.close()
