"""Owned: a real file of one owner, on a disk that refuses it for a while, and on a machine whose power is cut.

The owner's own code serves the file: its group commit, its two connections, and how it opens the file again
(`store/sqlite/lanes.py`, `store/open.py`). Between that code and SQLite stands `DiskConnection`, which refuses as a
disk does. It flushes nothing, and knows instead how much of the log a disk would have: the rest is lost when the power
is cut.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from watchbill.clock import Clock
from watchbill.env import Env
from watchbill.errors import StoreUnreachableError
from watchbill.store.migrate import new_store
from watchbill.store.open import open_store
from watchbill.store.protocol import Store
from watchbill.testing.chance import Chance
from watchbill.testing.full import RESUMED_WITHIN, DiskNetwork, FullDisk
from watchbill.testing.network import Letter
from watchbill.testing.world import World

IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a new folder is made there for each world
LOG_KEPT: Final = 4 << 20  # bytes of the log that are copied into the file then
EMPTIED: Final = "PRAGMA wal_checkpoint(TRUNCATE)"  # so that the size of the log says where it ends
CUTS: Final = 2  # of the power, at most
CUT_WITHIN: Final = (4.0, 18.0)  # seconds: while there is something to do
CUT_AFTER: Final = 10.0  # seconds in which a commit that is not flushed may come


class Refusal(NamedTuple):
    """How a disk says no."""

    words: str
    code: int
    at: str = "COMMIT"  # the statement; empty: whichever writes first
    after: bool = False  # it is carried out first: whether it is on the disk is known to nobody


REFUSALS: Final = (
    Refusal("database or disk is full", sqlite3.SQLITE_FULL),
    Refusal("database or disk is full", sqlite3.SQLITE_FULL, at=""),
    Refusal("disk I/O error", sqlite3.SQLITE_IOERR_FSYNC),
    Refusal("disk I/O error", sqlite3.SQLITE_IOERR_FSYNC, after=True),
    Refusal("attempt to write a readonly database", sqlite3.SQLITE_READONLY, at="BEGIN IMMEDIATE"),
)

_RUNS: Final = "SELECT num, status FROM main.run"
_ENTRIES: Final = "SELECT run, max(seq) FROM main.journal GROUP BY run"
_ROWS: Final = "SELECT id, state, fence FROM main.attempt"


class OwnedNetwork(DiskNetwork):
    """To a file that one process owns."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - passed through
        super().__init__(*args, **kwargs)
        self.folder = str(Path(self.store.url.removeprefix("sqlite:///")).parent)
        self.boot: Callable[[], Any]  # opens the file when there is power again

    @classmethod
    async def opened(cls, env: Env, clock: Clock, *, embedded: bool) -> Store:
        """Open a new file; what its owner before had is ended by whoever owns it next (`own`)."""
        folder = tempfile.mkdtemp(prefix="watchbill-world-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None)
        path = Path(folder) / "store.db"
        path.write_bytes(new_store())
        return await open_store(f"sqlite:///{path}", env, clock=clock, lasting_leases=False)

    async def own(self) -> None:
        """Open the file if the machine was off, and do what its owner does."""
        await self._loop.create_task(self._own(), context=self._ground)

    async def _own(self) -> None:
        if self.down:
            await self.boot()
        await super().own()

    async def _perform(self, letter: Letter) -> Any:  # noqa: ANN401 - whatever the door gives
        if self.down:
            raise StoreUnreachableError("the machine is off")
        try:
            return await super()._perform(letter)
        except StoreUnreachableError:
            self.leaves_uncleanly(letter.life)
            raise

    def close(self) -> None:
        """Delete the file."""
        lanes = vars(self.store)["_lanes"]
        for connection in (vars(lanes)["_writer"], vars(lanes)["_reader"]):
            connection.disconnect()
        vars(self.store)["_owner"].release()
        shutil.rmtree(self.folder, ignore_errors=True)


class DiskConnection:
    """A connection to a file on a disk that may refuse."""

    def __init__(self, behind: sqlite3.Connection, disk: "OwnedFile") -> None:
        self.behind = behind
        self._disk = disk
        self._changes = 0
        self.durable = True
        behind.execute("PRAGMA synchronous = OFF")
        behind.execute("PRAGMA wal_autocheckpoint = 0")
        behind.execute("PRAGMA busy_timeout = 0")  # no other process is there to wait for, and waiting takes real time

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a connection has
        return getattr(self.behind, name)

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:  # noqa: ANN401 - passed through
        """Run one statement, or refuse it."""
        if sql.startswith("PRAGMA synchronous"):
            self.durable = sql.endswith("FULL")
            return self.behind.execute("PRAGMA synchronous")
        if sql.startswith("PRAGMA wal_checkpoint"):
            return self.behind.execute(EMPTIED)
        if sql == "BEGIN IMMEDIATE":
            self._changes = self.behind.total_changes
        wrote = self.behind.total_changes
        refusal = self._disk.refusal
        named = refusal is not None and bool(refusal.at) and sql.startswith(refusal.at)
        if refusal is not None and named and (sql != "COMMIT" or wrote != self._changes) and self._disk.refuses():
            if refusal.after:
                self.behind.execute(sql, values)
            raise self._disk.refused(refusal)
        cursor = self.behind.execute(sql, values)
        self._check_room(wrote)
        if sql == "COMMIT" and wrote != self._changes:
            self._disk.written(self)
        return cursor

    def executemany(self, sql: str, rows: Iterable[Any]) -> sqlite3.Cursor:
        """Run one statement for each row."""
        wrote = self.behind.total_changes
        cursor = self.behind.executemany(sql, rows)
        self._check_room(wrote)
        return cursor

    def _check_room(self, before: int) -> None:
        """Refuse a statement that has written something: what others of its transaction wrote is undone with it."""
        refusal = self._disk.refusal
        if refusal is not None and not refusal.at and self.behind.total_changes != before and self._disk.refuses():
            raise self._disk.refused(refusal)


class OwnedFile(FullDisk):
    """Refuses the file of a world, frees it, and cuts the power."""

    def __init__(self, world: World, chance: Chance, suspend: Callable[[float], None]) -> None:
        super().__init__(world, chance, suspend)
        self.refusal: Refusal | None = None
        self.refuses: Callable[[], bool] = lambda: False
        self._synced = 0  # bytes of the log that a disk would have
        self._images = 0
        self._waiting = False  # for a commit that is not flushed: then the power is cut
        self._cuts = [chance.within(*CUT_WITHIN) for _ in range(1 + chance.below(CUTS))]
        self.until = max([self.until, *self._cuts])
        self._network.boot = self._boot
        self._take_over()

    @property
    def _network(self) -> OwnedNetwork:
        network = self._world.network
        assert isinstance(network, OwnedNetwork)  # noqa: S101 - made for it
        return network

    @property
    def _parts(self) -> dict[str, Any]:
        """What the owner has: its connections, its timers, and its group commit."""
        parts: dict[str, Any] = vars(vars(self._network.store)["_lanes"])
        return parts

    @property
    def _path(self) -> Path:
        return Path(self._network.store.url.removeprefix("sqlite:///"))

    @property
    def _log(self) -> Path:
        return self._path.with_name(self._path.name + "-wal")

    def begin(self) -> None:
        """Set the times."""
        super().begin()
        for at in self._cuts:
            self._world.loop.call_later(at, self._wait_for_a_commit)

    # --- the disk

    def refused(self, refusal: Refusal) -> sqlite3.OperationalError:
        """Count a refusal; gives the error of the driver."""
        self._network.refused_writes += 1
        error = sqlite3.OperationalError(refusal.words)
        error.sqlite_errorcode = refusal.code
        return error

    def written(self, connection: DiskConnection) -> None:
        """Take note of a commit; one that is durable flushes those before it, too."""
        size = self._log.stat().st_size
        if not connection.durable:
            self._world.counts["commits not flushed"] += 1
            if self._waiting:
                self._world.loop.call_soon(self._cut_power, context=self._world.life.context)
            return
        if size > LOG_KEPT:
            connection.behind.execute(EMPTIED).fetchone()
        self._synced = self._log.stat().st_size

    def _refuse(self, refuses: Callable[[], bool]) -> None:
        self.refuses = refuses
        self.refusal = self._chance.choose(REFUSALS)

    def _free(self) -> None:
        super()._free()
        self.refusal = None
        fills = self._fills

        def look() -> None:
            if fills == self._fills and not self._network.down and self._parts["_group"].failing:
                why = self._parts["_group"].failure
                self._world.checker.violated("I10", f"{RESUMED_WITHIN} s after the disk had room: {why}")

        self._world.loop.call_later(RESUMED_WITHIN, look)

    def _take_over(self) -> None:
        """Stand between the owner and its file, also when it is opened again."""
        writer = self._parts["_writer"]
        disconnect, reconnect = writer.disconnect, writer.reconnect

        def disconnected() -> None:
            self._world.watch(None)
            disconnect()

        def reconnected(connection: sqlite3.Connection) -> None:
            reconnect(DiskConnection(connection, self))
            self._synced = self._log.stat().st_size  # all of the log was copied into the file, and flushed
            self._world.counts["files opened again"] += 1
            self._world.watch(connection)
            self._check_kept(connection)

        writer.disconnect, writer.reconnect = disconnected, reconnected
        vars(writer)["_connection"] = DiskConnection(vars(writer)["_connection"], self)
        self._synced = self._log.stat().st_size

    def _check_kept(self, connection: sqlite3.Connection) -> None:
        """See whether all that was ever committed is there, and nothing else (I1)."""
        checker = self._world.checker
        runs = {num: run.status for num, run in checker.runs.items()}
        entries = vars(checker)["_last_seq"]
        rows = {id: (row.state, row.fence) for id, row in vars(checker)["_rows"].items()}
        found = dict(connection.execute(_RUNS)), dict(connection.execute(_ENTRIES))
        found_rows = {id: (state, fence) for id, state, fence in connection.execute(_ROWS)}
        deleted = {num for num in runs if num not in found[0] and "@" in checker.runs[num].id}  # by `World.prune`
        pairs = ((runs, found[0]), (entries, found[1]), (rows, found_rows))
        wrong = [_differing(known, there, deleted) for known, there in pairs]
        if any(wrong):
            checker.violated("I1", f"what was committed is not there, as (run, entry, row): {wrong}")

    # --- the power

    def _wait_for_a_commit(self) -> None:
        """Cut the power just after the next commit that is not flushed; if none comes for a while, all the same."""
        self._waiting = True
        self._world.loop.call_later(CUT_AFTER, self._cut_power)

    def _cut_power(self) -> None:
        """Let the machine lose its power: what the disk has not got is lost, and its process is dead."""
        world, network, parts = self._world, self._network, self._parts
        if self._healed or network.down or not self._waiting:
            return
        self._waiting = False
        node = world.nodes[0]
        network.down = True
        world.counts["faults"] += 1
        world.counts["power cuts"] += 1
        log = (
            self._log.read_bytes() if self._log.exists() else b""
        )  # none: it was closed, and nobody has opened it again
        size = len(log)
        world.counts["power cuts with losses"] += size > self._synced
        world.note("nemesis:", "the power is cut; bytes of the log that are lost:", max(0, size - self._synced))
        world.checker.hurt.add(node.life.name)
        node.life.die()
        self._images += 1
        image = Path(network.folder) / str(self._images) / self._path.name
        image.parent.mkdir()
        shutil.copyfile(self._path, image)
        image.with_name(self._log.name).write_bytes(log[: self._synced])
        parts["_closed"] = True
        vars(network.store)["_lanes"]._stop_timers()  # noqa: SLF001 - the dead have none
        parts["_group"].fail(StoreUnreachableError("the machine is off"))
        world.watch(None)
        files = parts["_writer"].files
        files.unguard()
        for connection in (parts["_writer"], parts["_reader"]):
            connection.disconnect()
        vars(network.store)["_owner"].release()
        self._image = image

    async def _boot(self) -> None:
        """Open what the disk has."""
        network, env = self._network, self._parts["_env"]
        store = await open_store(f"sqlite:///{self._image}", env, clock=env.clock, lasting_leases=False)
        network.store = store
        network.listen_to(store)
        network.down = False
        self._world.adopt(store)
        self._check_kept(vars(self._parts["_writer"])["_connection"])
        self._take_over()
        self._world.note("the machine is on")


def _differing(known: dict[int, Any], found: dict[int, Any], but: set[int]) -> dict[int, tuple[Any, Any]]:
    keys = (known.keys() | found.keys()) - but
    return {key: (known.get(key), found.get(key)) for key in keys if known.get(key) != found.get(key)}
