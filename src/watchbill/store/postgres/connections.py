"""Connections: the few that a process has to the server, opened when first needed and again when lost.

Turns have one of their own: they are the hot path. Renewals and beats have another: they must not wait behind a turn.
Operations that may take long have their own, too: inspections (lists, records, metrics), and what a scheduler loads or
deletes. All other doors share a small pool, so no inspection can delay a turn, a heartbeat, a lease or a report.

One statement is one message and one transaction; nothing of ours lives in the session but the settings below, and
behind a pooler they are said again in each transaction.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Final, Protocol, TypeVar, cast
from urllib.parse import urlencode

import asyncpg

from watchbill.clock import SECOND, Clock, Micros
from watchbill.env import Env
from watchbill.errors import StoreError
from watchbill.events import log
from watchbill.store.address import PostgresAddress
from watchbill.store.health import Health
from watchbill.store.postgres import refusals
from watchbill.store.postgres.statements import Statement, statements
from watchbill.store.postgres.versed import Versed

T = TypeVar("T")
Row = Sequence[object]
Values = Mapping[str, object]

OTHERS: Final = 2  # connections for looks, leases, reports, submits and verdicts
INSPECTIONS: Final = 2  # connections for lists, records and metrics; with all others and the listener eight in all
SLOW: Final[Micros] = SECOND // 20  # a door that takes longer may have a plan from when its tables were empty
REPLAN_APART: Final[Micros] = SECOND  # planning all statements of a connection anew takes some milliseconds
REMEDY_APART: Final[Micros] = 5 * SECOND
FIRST_TRIES: Final = 3  # to open a store, of a process that is stopped again and again while it does
ANSWERS_WITHIN: Final = 15.0  # seconds; longer than the server's own limit, for a server that is frozen or cut off

# Plans are made once, for any value: planning a turn costs more than running it. And they may use nothing but indexes:
# a plan that was made on an empty table would otherwise read all of it for ever.
_PLANS: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",  # it reads all and sorts, where an index gives the first of a list in order
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
}
# A process that freezes inside a transaction, or whose host is gone, must not hold a shard.
_LIMITS: Final = {"idle_in_transaction_session_timeout": "2s", "statement_timeout": "10s", "tcp_user_timeout": "10s"}
HOT: Final = {**_PLANS, **_LIMITS}
PLAIN: Final = {"statement_timeout": "60s", "jit": "off"}  # for commands: their reports may read much
MIGRATING: Final = {"lock_timeout": "10s", "jit": "off"}
READS: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"  # how a transaction begins that may be made again


class Connection(Protocol):
    """What we use of the driver's connection."""

    async def fetch(self, query: str, *values: object, timeout: float | None = None) -> list[Row]:
        """Run a statement with values; gives its rows. `timeout`: seconds, if less than usual."""
        ...

    async def execute(self, script: str) -> str:
        """Run statements without values."""
        ...

    async def close(self, *, timeout: float | None = None) -> None:
        """Say goodbye and close."""
        ...

    def terminate(self) -> None:
        """Close without saying so."""
        ...

    def is_closed(self) -> bool:
        """Say whether it is of no use any more."""
        ...

    def get_server_pid(self) -> int:
        """Give the number of the server's process behind it."""
        ...

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None:
        """Listen."""
        ...

    def add_termination_listener(self, callback: Callable[..., None]) -> None:
        """Call back when it ends."""
        ...


async def connect(address: PostgresAddress, settings: Mapping[str, str]) -> Connection:
    """Open one connection; raises what the driver raises."""
    # Behind a pooler of transactions the next message may reach another session: no settings, nothing prepared.
    said = {} if address.pooled else {**settings, "application_name": "watchbill"}
    connection = await asyncpg.connect(
        f"postgresql://?{urlencode(address.tls)}" if address.tls else None,
        host=[host for host, _ in address.servers] or address.host,
        port=[port for _, port in address.servers] or address.port,
        user=address.user,
        password=address.password,
        database=address.database,
        timeout=address.connect_timeout,
        command_timeout=ANSWERS_WITHIN if settings is HOT else None,
        statement_cache_size=0 if address.pooled else 256,
        max_cached_statement_lifetime=0,
        server_settings=said,
        connection_class=Versed,
        target_session_attrs="read-write" if address.servers else "any",
    )
    return cast(Connection, connection)


Look = Callable[[Connection, PostgresAddress], Awaitable[T]]  # at what is there, by the first connection


async def connect_first(
    address: PostgresAddress, settings: Mapping[str, str], clock: Clock, look: Look[T]
) -> tuple[Connection, T]:
    """Open the first connection and look what is there; raises what is to be said to whoever starts a program.

    A process that stands still meanwhile (its host is busy, or its machine was asleep) finds its session ended by the
    server, or its own time to connect over: nobody has refused it, so it tries again.
    """
    for tries_left in reversed(range(FIRST_TRIES)):
        connection: Connection | None = None
        begun_at = clock.boot()
        try:
            connection = await connect(address, settings)
            return connection, await look(connection, address)
        except BaseException as error:
            if connection is not None:
                connection.terminate()
            if not isinstance(error, Exception):
                raise
            if isinstance(error, TimeoutError):
                patience = address.connect_timeout if connection is None else ANSWERS_WITHIN
                ours = clock.boot() - begun_at > (patience + 1) * SECOND  # no timer is that late while we run
            else:
                ours = connection is not None and refusals.is_lost(error)
            if not ours or not tries_left:
                raise refusals.at_opening(error, address) from None
    raise AssertionError("the last try gives or raises")


class Session:
    """A connection for the time of one door: statements by name."""

    def __init__(self, connection: Connection, sql: Mapping[str, Statement], now: Callable[[], Micros | None]) -> None:
        self._connection = connection
        self._sql = sql
        self._now = now

    async def rows(self, statement: str | Statement, values: Values) -> list[Row]:
        """Run one statement; `now` is the store's own time unless a test says what it is."""
        found = self._sql[statement] if isinstance(statement, str) else statement
        arguments = [self._now() if name == "now" else values[name] for name in found.names]
        return await self._connection.fetch(found.text, *arguments)

    async def row(self, statement: str | Statement, values: Values) -> Row:
        """Run one statement that gives one row."""
        [row] = await self.rows(statement, values)
        return row


class Server:
    """The server behind the store, and how often it has become another one.

    Another server may have lost the newest commits of the one before. So may the same one, if it was asked to answer
    before they were on its disk.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._is = ""  # what it says of itself; empty: it does not say
        self.moves = 0

    async def greet(self, connection: Connection, *, turns: bool, again: bool) -> None:
        """Prepare a connection just opened, before anything is written on it."""
        address = self._address
        # What is not asked for by every turn is worth the wait, and makes the turns before it durable, too.
        commit = None if address.forgetful and not turns else address.commit
        [(found, _)] = await connection.fetch(statements(address.schema)["greet"].text, commit)
        self.recognise(cast(str, found))
        if again and address.forgetful:
            self.moves += 1

    def recognise(self, found: str) -> None:
        """Take note of which server has answered."""
        if found and self._is and found != self._is:
            self.moves += 1
            log.warning(
                "store %r is on another server or timeline (%s, was %s): what it may have lost is done again",
                self._address.shown,
                found,
                self._is,
            )
        self._is = found or self._is


# What `greet` sets for a session; said again in each transaction behind a pooler.
_DURABLE: Final = (
    "SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')"
    " THEN 'on' ELSE current_setting('synchronous_commit') END, true)"
)


class Line:
    """One connection; whoever finds it lost opens it again."""

    def __init__(  # noqa: PLR0913 - what is known of a server
        self,
        address: PostgresAddress,
        settings: Mapping[str, str],
        health: Health,
        slow: Callable[[], None],
        first: "Look[None] | None" = None,
        *,
        server: Server | None = None,
        turns: bool = False,
    ) -> None:
        self._server = server
        self._turns = turns
        self._opens = 0
        self._address = address
        self._settings = settings
        self._health = health
        self._check = first
        self._connection: Connection | None = None
        self._plans = Plans(health.clock, slow)

    def adopt(self, connection: Connection) -> None:
        """Use a connection that is open already."""
        self._connection = connection
        self._opens += 1

    async def run(self, work: Callable[[Connection], Awaitable[T]], begin: str | None, *, again: bool = True) -> T:
        """Run `work` on the connection, in a transaction if `begin` says how it begins.

        A process that stands still between two statements, because workflow code keeps its loop busy, loses its
        session: the server ends transactions that idle. What only reads is read once more then.
        """
        connection = await self._opened()
        if begin is None and self._address.pooled:
            begin = "BEGIN"
        try:
            if self._plans.suspect and not self._address.pooled:
                await connection.execute("DISCARD PLANS")
                self._plans.discarded()
            asked_at = self._plans.clock.boot()
            answer = await (work(connection) if begin is None else self._transact(connection, work, begin))
            self._plans.used_for(self._plans.clock.boot() - asked_at)
        except asyncio.CancelledError:
            self._drop(connection)
            raise
        except Exception as error:
            if refusals.took_too_long(error):
                self._plans.gave_up()
            if refusals.is_spoilt(error):
                self._drop(connection)
            elif refusals.is_lost(error) or connection.is_closed():
                self._drop(connection)
                if begin == READS and again and not isinstance(error, TimeoutError):
                    return await self.run(work, begin, again=False)
            translated = refusals.at_run_time(error, self._address)
            if translated is error:
                raise
            self._note_failure(error, translated)
            raise translated from error
        self._health.answered(asked_at)
        return answer

    def _note_failure(self, error: Exception, translated: BaseException) -> None:
        self._health.failed(translated)
        if refusals.refuses_writes(error):
            self._health.heartbeats.refused()

    async def _transact(self, connection: Connection, work: Callable[[Connection], Awaitable[T]], begin: str) -> T:
        if self._address.pooled:
            said = [f"SET LOCAL {name} = '{value}'" for name, value in self._settings.items()]
            if self._server is not None:
                said.append(self._commit())
            begin = ";".join([begin, *said])
        await connection.execute(begin)
        try:
            answer = await work(connection)
            await connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(Exception):
                await connection.execute("ROLLBACK")
            raise
        return answer

    def _commit(self) -> str:
        """Say in a transaction how its commit is made durable."""
        named = self._address.commit
        if named is None or (self._address.forgetful and not self._turns):
            return _DURABLE
        return f"SET LOCAL synchronous_commit = '{named}'"

    async def close(self) -> None:
        """Close."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            try:
                await connection.close(timeout=2)
            except Exception:
                connection.terminate()

    async def open(self) -> None:
        """Open the connection if it is not."""
        await self._opened()

    async def _opened(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            if self._check is not None:
                return await self._open_first(self._check)
            try:
                self._connection = await self._connected()
            except Exception as error:
                translated = refusals.at_reconnect(error, self._address)
                self._health.failed(translated)
                raise translated from None
        return self._connection

    async def _connected(self) -> Connection:
        connection = await connect(self._address, self._settings)
        try:
            if self._server is not None and not self._address.pooled:
                await self._server.greet(connection, turns=self._turns, again=self._opens > 0)
        except BaseException:
            connection.terminate()
            raise
        self._opens += 1
        return connection

    async def _open_first(self, check: "Look[None]") -> Connection:
        connection, _ = await connect_first(self._address, self._settings, self._health.clock, check)
        self._check = None
        self._connection = connection
        return connection

    def _drop(self, connection: Connection) -> None:
        connection.terminate()
        if self._connection is connection:
            self._connection = None


class Plans:
    """Says when the plans that a connection keeps should be made anew.

    A plan is kept until its tables are analysed the next time, a minute or more. One that was made while a table was
    empty and vacuumed, as that of attempts is after every quiet night, may read all of it for each row it looks for:
    nothing told the planner that this would ever matter. Then doors become slow, and that is seen here.
    """

    def __init__(self, clock: Clock, tell: Callable[[], None]) -> None:
        self.clock = clock
        self._tell = tell
        self._slow = False
        self._discarded_at: Micros | None = None

    @property
    def suspect(self) -> bool:
        """True when a door was slow, and the plans are not quite new."""
        if not self._slow:
            return False
        return self._discarded_at is None or self.clock.boot() - self._discarded_at >= REPLAN_APART

    def discarded(self) -> None:
        """Take note that all plans will be made anew."""
        self._slow = False
        self._discarded_at = self.clock.boot()

    def gave_up(self) -> None:
        """Take note that a door was cancelled: by the same plan it would be every time."""
        self._slow = True
        self._tell()

    def used_for(self, took: Micros) -> None:
        """Look how long a door took."""
        if took > SLOW:
            self._slow = True
            self._tell()


class Pool:
    """Some lines of one kind, each for one door at a time; the last one used is used next, so few are ever opened."""

    def __init__(self, lines: list[Line]) -> None:
        self._idle = list(lines)
        self._lines = lines
        self._free = asyncio.Semaphore(len(lines))

    def adopt(self, connection: Connection) -> None:
        """Use a connection that is open already."""
        self._lines[-1].adopt(connection)

    @contextlib.asynccontextmanager
    async def line(self) -> AsyncIterator[Line]:
        """Lend a line."""
        async with self._free:
            line = self._idle.pop()
            try:
                yield line
            finally:
                self._idle.append(line)

    async def open(self) -> None:
        """Open a connection that is not open, and so hear which server there is."""
        async with self.line() as line:
            await line.open()

    async def close(self) -> None:
        """Close all."""
        for line in self._lines:
            await line.close()


Remedy = Callable[[Session], Awaitable[object]]


class Connections:
    """All ways of one process to its store."""

    def __init__(  # noqa: PLR0913 - what is known of a server
        self,
        address: PostgresAddress,
        env: Env,
        clock: Clock | None,
        settings: Mapping[str, str] = HOT,
        *,
        first: Look[None] | None = None,
        region: str | None = None,
    ) -> None:
        self.address = address
        self.env = env
        self.region = region  # the only one whose rows our role sees; None: it sees all
        self._sql = statements(address.schema)
        self.clock = clock or env.clock
        self.now = given_time(clock)
        self.health = Health(address.shown, env.clock)
        self.server = Server(address)
        greeted = self.server if settings is HOT else None  # who only reads need not know
        self.turns = Pool([Line(address, settings, self.health, self._slow, server=greeted, turns=True)])
        self.beats = Pool([Line(address, settings, self.health, self._slow, server=greeted)])
        self.others = Pool(
            [Line(address, settings, self.health, self._slow, first, server=greeted) for _ in range(OTHERS)]
        )
        self.inspections = Pool(
            [Line(address, settings, self.health, self._slow, first, server=greeted) for _ in range(INSPECTIONS)]
        )
        self.loads = Pool([Line(address, settings, self.health, self._slow, server=greeted)])
        self.remedy: Remedy | None = None  # for what may make doors slow
        self._remedied_at: Micros | None = None
        self._under_way: set[asyncio.Task[object]] = set()
        self._closed = False

    def check(self) -> None:
        """Raise if it is closed."""
        if self._closed:
            raise StoreError(f"store {self.address.shown!r} is closed: open it again to use it")

    async def door(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do all of a door, waited for or not: a caller that is cancelled leaves no connection in the middle."""
        self.check()

        async def whole() -> T:
            try:
                return await work()
            except asyncpg.UniqueViolationError as error:
                if error.constraint_name != "blob_pkey":
                    raise
            # Another process has drawn the same number for a large body of the same run. Each try draws them anew.
            self.env.renumber()
            return await work()

        return await asyncio.shield(self.begin(whole()))

    def begin(self, work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
        """Begin what must come to its end before the store is closed, whoever waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        kept = cast("asyncio.Task[object]", task)
        self._under_way.add(kept)
        task.add_done_callback(lambda _: self._ended(kept))
        return task

    async def run(self, pool: Pool, work: Callable[[Session], Awaitable[T]], begin: str | None = None) -> T:
        """Run statements on a connection of a pool; each is a transaction, unless `begin` makes them one."""
        async with pool.line() as line:
            return await line.run(lambda connection: work(Session(connection, self._sql, self.now)), begin)

    async def heartbeat(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Write a heartbeat. Whether the server accepts it decides what the silence of others means here."""
        answer = await self.run(self.beats, work)
        self.health.heartbeats.accepted()
        return answer

    async def rows(self, pool: Pool, statement: str | Statement, values: Values) -> list[Row]:
        """Run one statement."""
        return await self.run(pool, lambda db: db.rows(statement, values))

    async def row(self, pool: Pool, statement: str | Statement, values: Values) -> Row:
        """Run one statement that gives one row."""
        return await self.run(pool, lambda db: db.row(statement, values))

    async def transact(self, work: Callable[[Session], Awaitable[T]], pool: Pool | None = None) -> T:
        """Run statements in one transaction."""
        return await self.run(pool or self.others, work, "BEGIN")

    async def snapshot(self, work: Callable[[Session], Awaitable[T]], pool: Pool | None = None) -> T:
        """Let statements read one state of the store, whatever is committed meanwhile."""
        return await self.run(pool or self.inspections, work, READS)

    async def settle(self) -> None:
        """Refuse new doors, and let those under way end."""
        self._closed = True
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def close(self) -> None:
        """Refuse new doors, let those under way end, and close."""
        await self.settle()
        for pool in (self.turns, self.beats, self.others, self.inspections, self.loads):
            await pool.close()

    def _slow(self) -> None:
        """See to what may have made a door slow, beside all others, and not again and again."""
        now = self.env.clock.boot()
        if self.remedy is None or self._closed:
            return
        if self._remedied_at is None or now - self._remedied_at >= REMEDY_APART:
            self._remedied_at = now
            self.begin(self.run(self.inspections, self.remedy))

    def _ended(self, task: "asyncio.Task[object]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits has it; if nobody does any more, it is nobody's


def given_time(clock: Clock | None) -> Callable[[], Micros | None]:
    """Give the time that statements are told: none, so that the server's clock counts, unless a test has a clock."""
    if clock is None:
        return lambda: None
    zero = clock.wall() - clock.boot()
    return lambda: zero + clock.boot()
