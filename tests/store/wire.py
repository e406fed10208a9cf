"""Wire: the way between a store and its server, in our hands: it can be frozen, gag the server, or be cut.

A process that freezes says nothing more and reads nothing more, while its connections stay open: that is what a frozen
wire looks like to the server. A cut one looks like a network that forgot its connections: the client hears of it, the
server does not, and goes on with what it is doing.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from tests.store.postgres import address_of

# "E", the length, the fields, and an end: what a server sends when an operator ends a session.
_FIELDS = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
GOODBYE = b"E" + (4 + len(_FIELDS)).to_bytes(4) + _FIELDS


class Strand:
    """One connection: the client's end and the server's."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.said = b""  # by the client
        self.deaf = False  # the server hears nothing of the client
        self.mute = False  # the client hears nothing of the server
        self.severed = False


class Wire:
    """Carries messages both ways until it is told otherwise."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self._address = address_of(server)
        self._listener: asyncio.Server | None = None
        self._strands: list[Strand] = []
        self._carrying: set[asyncio.Task[None]] = set()
        self._stops_before: tuple[bytes, bytes] | None = None
        self._messages_left: int | None = None
        self._lost: bytes | None = None
        self._gagged = False
        self._frozen = asyncio.Event()

    def url(self, *, pooler: str = "none") -> str:
        """Give the address of the store through this wire."""
        address = self._address
        user = quote(address.user or "", safe="")
        password = f":{quote(address.password, safe='')}" if address.password else ""
        where = f"host={quote(str(self._folder))}&schema={address.schema}&pooler={pooler}"
        return f"postgresql://{user}{password}@/{quote(address.database or '', safe='')}?{where}"

    # --- what a test does to it

    def freeze_after(self, messages: int) -> None:
        """Let the client say so much more, and then nothing; it hears nothing either."""
        self._messages_left = messages

    def freeze_before(self, message: bytes, *, after: bytes = b"") -> None:
        """Freeze instead of carrying a message with these words, on a connection where the others were said before."""
        self._stops_before = message, after

    async def frozen(self) -> None:
        """Wait until it is."""
        async with asyncio.timeout(120):
            await self._frozen.wait()

    def lose(self, message: bytes) -> None:
        """Lose messages with these words, and whatever else is said on their connections."""
        self._lost = message

    def silence(self, message: bytes) -> None:
        """Carry nothing more, in either direction, on connections whose client has sent these words: half-open."""
        for strand in self._strands:
            if message in strand.said:
                strand.deaf = strand.mute = True

    def say_goodbye(self, message: bytes) -> None:
        """Send the server's last message on connections whose client has sent these words, but no end of file yet."""
        for strand in self._strands:
            if message in strand.said and not strand.client.is_closing():
                strand.client.write(GOODBYE)

    def gag(self) -> None:
        """Carry no more answers."""
        self._gagged = True

    def cut(self) -> None:
        """Let the client lose its connections; the server does not hear of it. New ones are carried as ever."""
        for strand in self._strands:
            if not strand.severed:
                strand.severed = True
                strand.client.close()
        self._gagged = False
        self._messages_left = self._stops_before = self._lost = None
        self._frozen.clear()

    def refuse(self) -> None:
        """Let nobody connect any more; what is connected stays."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def statements(self) -> Counter[str]:
        """Count what the client had the server run, on all connections, by its first line; transactions' ends, too."""
        return sum((Counter(statements_in(strand.said)) for strand in self._strands), Counter())

    # --- carrying

    async def open(self) -> None:
        """Listen."""
        self._listener = await asyncio.start_unix_server(self._connected, self._folder / ".s.PGSQL.5432")

    async def close(self) -> None:
        """Hang up, on both sides."""
        self.refuse()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)
        for strand in self._strands:
            for end in (strand.client, strand.server):
                end.close()
                with contextlib.suppress(OSError):
                    await end.wait_closed()

    async def _connected(self, from_client: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        host, port = self._address.host or "localhost", self._address.port or 5432
        if host.startswith("/"):
            from_server, server = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            from_server, server = await asyncio.open_connection(host, port)
        strand = Strand(client, server)
        self._strands.append(strand)
        for way in (self._there(from_client, strand), self._back(from_server, strand)):
            self._carrying.add(asyncio.ensure_future(way))

    async def _there(self, from_client: asyncio.StreamReader, strand: Strand) -> None:
        while message := await _read(from_client):
            if self._stops_before is not None:
                words, before = self._stops_before
                if words in message and before in strand.said:
                    self._frozen.set()
            strand.said += message
            if self._lost is not None and self._lost in message:
                strand.deaf = True
            if self._frozen.is_set() or strand.severed or strand.deaf:
                continue
            strand.server.write(message)
            if self._messages_left is not None:
                self._messages_left -= 1
                if self._messages_left == 0:
                    self._frozen.set()
        if not strand.severed and not self._frozen.is_set():
            strand.server.close()  # the client hung up by itself

    async def _back(self, from_server: asyncio.StreamReader, strand: Strand) -> None:
        while message := await _read(from_server):
            if not (strand.severed or strand.mute or self._gagged or self._frozen.is_set()):
                strand.client.write(message)
        if not self._frozen.is_set():
            strand.client.close()


def statements_in(said: bytes) -> Iterator[str]:
    """Give the first lines of the statements that a client has run, in order, from all it has said.

    A message is its kind, its length and its body, but for the first one, which has no kind.
    """
    texts: dict[bytes, str] = {}  # of those that are prepared, by name
    portal = ""
    place = int.from_bytes(said[:4])
    while place < len(said):
        kind, length = said[place : place + 1], int.from_bytes(said[place + 1 : place + 5])
        body = said[place + 5 : place + 1 + length]
        place += 1 + length
        name, _, rest = body.partition(b"\0")
        if kind == b"P":
            texts[name] = _first_line(rest)
        elif kind == b"B":
            portal = texts[rest.partition(b"\0")[0]]
        elif kind == b"E":
            yield portal
        elif kind == b"Q":
            yield _first_line(body)


def _first_line(text: bytes) -> str:
    return text.partition(b"\0")[0].decode().partition("\n")[0]


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(1 << 20)
    except ConnectionError:
        return b""
