"""Proxy: a TCP door of the test's own between one process and its PostgreSQL, which can be cut."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from urllib.parse import quote

from tests.store.postgres import address_of

PIECE = 1 << 16


class Proxy:
    """Passes bytes on in both directions until it is cut: then nothing passes, and no end hears of it."""

    def __init__(self, url: str) -> None:
        self._address = address_of(url)
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._connected, "127.0.0.1", 0), self._loop
        ).result()

    @property
    def url(self) -> str:
        """The address of the same store, through here."""
        port: int = self._server.sockets[0].getsockname()[1]
        who = quote(self._address.user or "") + (f":{quote(self._address.password)}" if self._address.password else "")
        return f"postgresql://{who}@127.0.0.1:{port}/{self._address.database}?schema={self._address.schema}"

    def cut(self) -> None:
        """Let nothing pass any more; connections stay open at both ends."""
        self._loop.call_soon_threadsafe(self._passing.clear)

    def close(self) -> None:
        """Close all connections."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self._address.host or "localhost", self._address.port or 5432
        if host.startswith("/"):
            there, back = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            there, back = await asyncio.open_connection(host, port)
        for source, sink in ((reader, back), (there, writer)):
            task = self._loop.create_task(self._pass(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError):
                while piece := await source.read(PIECE):
                    await self._passing.wait()
                    sink.write(piece)
                    await sink.drain()
            await self._passing.wait()
        finally:
            sink.close()


@contextlib.contextmanager
def proxy(url: str) -> Iterator[Proxy]:
    """Have a proxy for the length of a trial."""
    there = Proxy(url)
    try:
        yield there
    finally:
        there.close()
