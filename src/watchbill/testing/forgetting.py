"""Forgetting: a store that loses its last commits, as a server does whose asynchronous standby is promoted.

The processes of such a world see what clients of PostgreSQL see: their connections break, a new one reaches another
server, terms and fences have jumped (`docs/operate/failover.md`). They use the same code for that (`store/newest.py`,
`store/reported.py`). The checker's picture of the store goes back with the store: see `Picture`.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from watchbill.clock import Clock, Micros
from watchbill.model.agent import Answer, Report
from watchbill.model.states import RunState
from watchbill.store.newest import Newest
from watchbill.store.protocol import Turn, TurnAnswer
from watchbill.store.reported import Reported
from watchbill.store.sqlite.database import Database, json_text
from watchbill.testing.chance import Chance
from watchbill.testing.invariants import Call, Checker
from watchbill.testing.links import EVERYBODY
from watchbill.testing.network import Doors, Letter, Network, SchedulerDoors
from watchbill.testing.virtual import Life
from watchbill.testing.workload import Wish, chain
from watchbill.testing.world import Clients, World

SERVER: Final = "server"  # the room of messages to the server itself
FAILOVERS: Final = 3
MARCHES: Final = 6  # runs that write something all the time
LAG: Final = (0.5, 4.0)  # seconds of commits that the standby has not received
PATIENCE: Final = 2.0  # seconds to wait for a turn to fail with
AWAY: Final = ((0.3, 2.5), (1.0, 12.0))  # seconds without a primary

_RAISE: Final = (  # as migrations/postgres/0030_server.pre.sql has it
    "UPDATE main.meta SET value = value + 1000000 WHERE key = 'term'",
    "UPDATE main.sqlite_sequence SET seq = seq + 1000000",
    "INSERT OR REPLACE INTO main.meta (key, value) SELECT 'fence_floor', value << 20 FROM main.meta WHERE key = 'term'",
)
_FLOOR: Final = "SELECT value FROM main.meta WHERE key = 'fence_floor'"


def marches(chance: Chance, within: float) -> list[Wish]:
    """Draw runs of many steps: whenever the store forgets, some of them have just written something."""
    drawn = []
    for number in range(MARCHES):
        n, seconds = chance.below(50), chance.choose((0.1, 0.3, 1.3))
        length = round(12 / (seconds + 0.2))
        at = chance.within(0, within * 0.8)
        drawn.append(Wish(f"march-{number}", chain, (n, length, seconds), at, (n + length,)))
    return drawn


class MovingNetwork(Network):
    """Between the nodes and a store that may become another server."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - passed through
        super().__init__(*args, **kwargs)
        self.server = 0  # which one it is
        self.moved_at = -1.0  # when it became this one
        self.failed_at = -1.0  # when the last one before it failed
        self.ends_with: Callable[[], None] | None = None  # called with the next turn that writes something
        self._known: dict[str, int] = {}  # the server that each process has reached last
        self._moves: Counter[str] = Counter()

    def moves(self, life: Life) -> int:
        """Say how often a process has found another server than before."""
        return self._moves[life.name]

    def is_behind(self, life: str) -> bool:
        """Say whether a process has not reached the server as it is now."""
        name = life.partition("/")[0]
        return self._known.get(name, self.server) != self.server

    def clock(self) -> Clock:
        """Give a clock for those who measure spans."""
        return _LoopClock(self)

    def doors(self, life: Life, room: str) -> Doors:
        """Give the doors of one room, as a process has them."""
        if room == "scheduler":
            return MovingSchedulerDoors(self, life)
        return MovingAgentDoors(self, life) if room == "agent" else super().doors(life, room)

    def _arrive(self, letter: Letter) -> None:
        if letter.sent < self.moved_at:  # its connection is broken
            self.lost += 1
            self._note_goodbye(letter, arrived=False)
            vars(self)["_loop"].call_soon(letter.give_up, context=letter.life.context)
        else:
            super()._arrive(letter)

    def _bring(self, letter: Letter, seconds: float, result: object, failure: Exception | None) -> None:
        def arrive() -> None:
            if letter.sent < self.failed_at:  # its connection broke before
                letter.give_up()
            else:
                letter.answer_with(result, failure)

        vars(self)["_loop"].call_later(seconds, arrive, context=letter.life.context)

    async def _perform(self, letter: Letter) -> Any:  # noqa: ANN401 - whatever the door gives
        life = letter.life.name
        if self._known.setdefault(life, self.server) != self.server:
            self._known[life] = self.server
            self._moves[life] += 1
        if letter.room == SERVER:
            return await self._read(letter.door, *letter.args)
        follows: Mapping[int, int] = letter.kwargs.pop("follows", {})
        if follows and await self._read("turn_follows", {"entries": json_text(follows)}, first=True) < len(follows):
            turn: Turn = letter.args[0]
            asked = {"terms": json_text(turn.terms), "owner": turn.owner, "buried": True}
            held = frozenset(shard for (shard,) in await self._read("held_leases", asked))
            return TurnAnswer(applied=False, held=held, now=vars(self.store)["_lanes"].now())
        result = await super()._perform(letter)
        strike = self.ends_with
        if strike is not None and letter.door == "turn" and (letter.args[0].journal or letter.args[0].attempts):
            letter.journey = letter.journey._replace(back=None)  # its answer is lost with the connection
            vars(self)["_loop"].call_later(PATIENCE, letter.give_up, context=letter.life.context)
            strike()
        return result

    def _may_raise(self, letter: Letter, error: Exception) -> bool:
        """A turn about a run that the store has lost is refused; the scheduler divides it."""
        there = vars(self)["_checker"].runs
        about_lost = letter.door == "turn" and any(change.num not in there for change in letter.args[0].runs)
        return self.server > 0 and about_lost and isinstance(error, ValueError)

    async def _read(self, statement: str, values: Mapping[str, Any], *, first: bool = False) -> Any:  # noqa: ANN401 - rows
        if not statement:
            return None

        def read(db: Database) -> Any:  # noqa: ANN401 - rows
            rows = db.run(statement, dict(values)).fetchall()
            return rows[0][0] if first else rows

        return await vars(self.store)["_lanes"].read(read)


class _LoopClock:
    def __init__(self, network: MovingNetwork) -> None:
        self._loop = vars(network)["_loop"]

    def wall(self) -> Micros:
        """Give the world's time."""
        return self.boot()

    def boot(self) -> Micros:
        """Give the world's time."""
        now: Micros = self._loop.now
        return now


class MovingSchedulerDoors(SchedulerDoors):
    """The doors of a scheduler to a server: each turn requires the newest entry of this process, as on PostgreSQL.

    The store in this world also remembers what was appended, and does not forget it with its commits: so that its own
    checks, which PostgreSQL has not, do not hide a mistake of these.
    """

    def __init__(self, network: MovingNetwork, life: Life) -> None:
        super().__init__(network, life, "scheduler")
        self._moving = network
        self._to = life
        self._newest = Newest(network.clock())

    def moves(self) -> int:
        """Say how often this process has found another server than before."""
        return self._moving.moves(self._to)

    async def turn(self, turn: Turn, *, again: bool = False) -> TurnAnswer:
        """Write one turn."""
        kwargs = {"again": again, "follows": self._newest.follows(turn)}
        try:
            answer: TurnAnswer = await self._moving.call(self._to, "scheduler", "turn", (turn,), kwargs)
        except BaseException:
            self._newest.forget_tails()
            raise
        self._newest.answered(turn, answer)
        return answer

    async def release(self, owner: int, terms: dict[int, int], uncounted: Sequence[int] = ()) -> None:
        """Give shards back."""
        self._newest.forget()
        await self._moving.call(self._to, "scheduler", "release", (owner, terms, uncounted), {})


class MovingAgentDoors(Doors):
    """The doors of an agent to a server: it reports again what another server has not heard of, as on PostgreSQL."""

    def __init__(self, network: MovingNetwork, life: Life) -> None:
        super().__init__(network, life, "agent")
        self._moving = network
        self._to = life
        self._reported = Reported(network.clock(), lambda: network.moves(life), self._read)

    async def join(self, agent: int, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - passed through
        """Insert this agent."""
        await self._moving.call(self._to, "agent", "join", (agent, *args), kwargs)
        self._reported.joined(agent)

    async def report(self, agent: int, reports: Sequence[Report]) -> list[Answer]:
        """Write outcomes and checkpoints."""
        answers: list[Answer] = await self._moving.call(self._to, "agent", "report", (agent, reports), {})
        self._reported.answered(reports)
        return answers

    async def beat(
        self,
        agent: int,
        lasting: Micros | None,
        progress: Sequence[Any],
        held: Sequence[tuple[int, int]] = (),
        **kwargs: Any,  # noqa: ANN401 - passed through
    ) -> Any:  # noqa: ANN401 - passed through
        """Prolong; before that, report again what another server than before has not heard of."""
        if kwargs.get("lease_no") is not None:
            if self._moving.is_behind(self._to.name):
                await self._read("", {})
            if reports := await self._reported.unanswered(agent, held, lasting):
                await self._moving.call(self._to, "agent", "report", (agent, reports), {})
        return await self._moving.call(self._to, "agent", "beat", (agent, lasting, progress, held), kwargs)

    async def _read(self, statement: str, values: Mapping[str, object]) -> Sequence[Any]:
        given = {name: json_text(value) if isinstance(value, list) else value for name, value in values.items()}
        rows: Sequence[Any] = await self._moving.call(self._to, SERVER, statement, (given,), {})
        return rows


# What the checker knows from the store alone: it goes back with the store, to the letter.
_OF_THE_STORE: Final = (
    *("runs", "nums", "results", "_parts", "_ends", "_undone", "_rows", "_row_fences", "_last_seq", "_running"),
    *("_since", "_returned"),
)


class Picture:
    """The checker's picture of the store at one moment.

    Going back, the checker keeps what really happened, which no loss undoes: attempts that began and how they ended,
    effects, and the newest fence and term of all times. Attempts that began since then are marked: nobody can count
    them, or know of them, whose begin the store has lost.
    """

    def __init__(self, checker: Checker) -> None:
        known = vars(checker)
        self._kept = {name: _copy(known[name]) for name in _OF_THE_STORE}
        self._calls = {key: (call.accepted, call.row, call.newest) for key, call in _calls(checker).items()}
        self._entries = {entry: entry.saved for call in _calls(checker).values() for entry in call.entries}
        self._alive = set(checker.alive)
        self._leases = {shard: history[-1] for shard, history in known["_leases"].items()}

    def bring_back(self, checker: Checker) -> None:
        """Let the checker believe of the store what it believed then."""
        known = vars(checker)
        terms = {term for _, _, term in self._leases.values()}
        begun = {num for num, run in self._kept["runs"].items() if run.status != RunState.SCHEDULED}
        known_calls = {key: self._calls.get(key, (None, None, 0)) for key in _calls(checker)}
        outcomes = {
            key for key, call in _calls(checker).items() if call.accepted is not None and known_calls[key][0] is None
        }
        checker.lost_outcomes |= outcomes
        for (num, part, _), call in _calls(checker).items():
            call.asked_again = False
            for entry in call.entries:
                entry.saved = self._entries.get(entry, 0)
                if entry not in self._entries:
                    entry.forgotten = True
                    led_to = num in begun and not any((num, part, key) in outcomes for key in entry.after)
                    entry.unknown |= entry.leased or not led_to or entry.fence >> 20 not in terms
        for (num, part, key), call in _calls(checker).items():
            accepted, row, newest = known_calls[num, part, key]
            # A fence that was issued in lost commits, and under which nothing began, is known to nobody.
            call.newest = max([newest, *(entry.fence for entry in call.entries)])
            call.accepted, call.row = accepted, row
            if num in checker.runs and num not in self._kept["runs"]:
                where = (checker.runs[num].id, part, key)
                checker.fences[where] = max(call.newest, checker.fences.get(where, 0))
        for num, keys in known["_undone"].items():
            checker.lost_undos.setdefault(num, set()).update(keys)
        lost = {id: row.fence for id, row in known["_rows"].items() if id not in self._kept["_rows"]}
        checker.lost_rows.update(lost)
        for name, value in self._kept.items():
            known[name].clear()
            (known[name].update if isinstance(value, dict | set) else known[name].extend)(_copy(value))
        for shard, (_, owner, term) in self._leases.items():
            known["_leases"][shard].append((checker.transactions, owner, term))
        checker.hurt |= checker.alive | self._alive  # also of a clean end the store may have lost the record


def _calls(checker: Checker) -> dict[tuple[int, int, str], Call]:
    calls: dict[tuple[int, int, str], Call] = vars(checker)["_calls"]
    return calls


def _copy(value: Any) -> Any:  # noqa: ANN401 - dicts and sets of whatever the checker keeps
    if isinstance(value, dict):
        return {key: each.copy() if isinstance(each, list | set) else each for key, each in value.items()}
    return value.copy()


class Failover:
    """Promotes a standby that has not received the last commits."""

    def __init__(self, world: World, clients: Clients, chance: Chance, storm: float) -> None:
        self._world = world
        self._clients = clients
        self._chance = chance
        self._storm = self.until = storm
        self._away = 0.0
        self._healed = False
        self._image: sqlite3.Connection | None = None
        self._picture: Picture
        self._since = 0.0
        self._commits = 0

    def begin(self) -> None:
        """Set the times."""
        for n in range(FAILOVERS):
            share = self._storm * 0.8 / FAILOVERS
            self._world.loop.call_later(self._chance.within(n * share + 2, (n + 1) * share), self._fall_behind)

    def heal(self) -> None:
        """Promote nothing any more."""
        self._healed = True
        if isinstance(self._world.network, MovingNetwork):
            self._world.network.ends_with = None

    def _fall_behind(self) -> None:
        """Keep the store as it is now: so the standby will have it."""
        world = self._world
        if self._healed or world.network.waits.is_cut(EVERYBODY) or self._image is not None:
            return
        self._image = sqlite3.connect(":memory:")
        vars(world)["_connection"].backup(self._image)
        self._picture = Picture(world.checker)
        self._since, self._commits = world.loop.time(), world.checker.transactions
        lag = self._chance.choose((0.0, self._chance.within(*LAG)))
        self._away = self._chance.within(*self._chance.choose(AWAY))
        world.loop.call_later(lag, self._wait_for_a_turn)

    def _wait_for_a_turn(self) -> None:
        """Fail between the commit of a turn and its answer, or a little later."""
        network = self._world.network
        if isinstance(network, MovingNetwork) and not self._healed:
            network.ends_with = self._fail
            self._world.loop.call_later(PATIENCE, lambda: None if network.ends_with is None else self._fail())

    def _fail(self) -> None:
        world, network = self._world, self._world.network
        if not isinstance(network, MovingNetwork):
            return
        network.ends_with = None
        if self._healed or network.waits.is_cut(EVERYBODY):
            self._image = None
            return
        network.waits.cut(EVERYBODY)
        network.failed_at = world.loop.time()
        world.counts["faults"] += 1
        world.note("nemesis:", "the server is gone for", round(self._away, 3))
        world.loop.call_later(self._away, self._promote)

    def _promote(self) -> None:
        world, image, network = self._world, self._image, self._world.network
        self._image = None
        if self._healed or image is None or not isinstance(network, MovingNetwork):
            return
        if not network.waits.is_cut(EVERYBODY):
            return  # somebody else has brought the store back
        connection: sqlite3.Connection = vars(world)["_connection"]
        image.backup(connection)
        for statement in _RAISE:
            connection.execute(statement)
        (world.checker.fence_floor,) = connection.execute(_FLOOR).fetchone()
        vars(world)["_changes"].take()
        self._picture.bring_back(world.checker)
        network.server += 1
        world.checker.is_behind = network.is_behind
        network.moved_at = world.loop.time()
        lost = world.checker.transactions - self._commits
        world.counts["stores that forgot"] += 1
        world.counts["commits forgotten"] += lost
        world.note("nemesis:", "the standby is promoted; commits lost:", lost)
        network.waits.mend(EVERYBODY)
        self._clients.repeat(self._since)
