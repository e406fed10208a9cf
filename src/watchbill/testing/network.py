"""Network: between every node and the one store. Each call of a door is a message: it can be late, lost, unanswered.

The store itself stands in no process: what has arrived there is carried out, whatever becomes of the caller.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import msgspec

from watchbill.clock import SECOND, Clock, Micros
from watchbill.env import Env
from watchbill.errors import DuplicateRun, StoreUnreachableError
from watchbill.loop import LONGEST_PAUSE
from watchbill.model.attempt import AttemptRow
from watchbill.store.health import Health
from watchbill.store.open import MEMORY, open_store
from watchbill.store.protocol import AgentStore, ClientStore, Hint, SchedulerStore, Store, SupervisorStore, Turn
from watchbill.store.sqlite.burial import end_owned
from watchbill.testing.chance import Chance
from watchbill.testing.invariants import Checker
from watchbill.testing.links import EVERYBODY, Links
from watchbill.testing.virtual import Life, VirtualLoop

SLOW_FROM: Final = 0.1  # seconds on the way: what is faster keeps nobody from anything
# Of agents: while they wait for these answers they beat all the same, so nobody may miss them for that.
HEARD_BESIDE: Final = frozenset({"report", "lease", "lease_limited", "queues", "undecided", "learn"})
# Who asks for these again reads the second answer: what it gave, and the first did not, is his without his knowing.
HEARD_TWICE: Final = frozenset({"take"})
# By these a process that stops gives back what it has. If one of them finds no store, those after it are not sent.
GOODBYES: Final = frozenset({("agent", "report"), ("agent", "leave"), ("scheduler", "turn"), ("scheduler", "release")})
USUALLY_SLOWEST: Final = 5.0  # seconds one way; what is promised in seconds is promised for such weather
BEATS: Final = 10  # that an agent may make in a second, and two more for whatever it hears or has to say
PATIENCE: Final = 2.0  # seconds after which the caller of a lost message knows that no answer will come
DETAINED: Final = 0.5  # seconds until a request that stays on its way is asked about again
PAUSE: Final = LONGEST_PAUSE / SECOND  # before it asks again


@dataclass(frozen=True)
class Weather:
    """How bad the network is: the share of messages to which each thing happens."""

    lost_requests: float = 0.0
    lost_replies: float = 0.0
    slow: float = 0.0  # take `slowest` seconds at most
    slowest: float = 0.1
    lost_hints: float = 0.0
    contended: float = 0.0  # of takes: some shards are locked just then, as SKIP LOCKED skips them
    repeated: float = 0.0  # of requests: carried out twice, before the first answer arrives

    @property
    def lag(self) -> float:
        """By how many seconds more than usual somebody may wait for an answer, and so do nothing."""
        return max(0.0, 2 * (self.slowest - USUALLY_SLOWEST))


CALM: Final = Weather()


class WriteRefused(Exception):
    """The disk of the store has no room for a transaction."""


class Journey(NamedTuple):
    """What will happen to one message."""

    there: float | None  # seconds; None: it never arrives
    back: float | None  # None: the answer never arrives
    again: float | None = None  # so long after it arrived it arrives a second time

    @property
    def lasting(self) -> float:
        """For how many seconds the caller waits for the answer, or until it knows that none will come."""
        return PATIENCE if self.there is None or self.back is None else self.there + self.back


class Network:
    """Carries messages. The weather changes; what is under way keeps its fate."""

    def __init__(
        self, loop: VirtualLoop, store: Store, checker: Checker, chance: Chance, note: Callable[..., None]
    ) -> None:
        self.weather = CALM
        self.waits = Links(loop.time)  # of each process for answers; cut: what it sends goes nowhere
        self.silences = Links(loop.time)  # likewise, but only what keeps it from saying that it is there
        self.local = False  # the store is a file of its one owner: what the dead have sent is never carried out
        self.messages = 0
        self.lost = 0  # of these, or their answers
        self.doubled: Counter[str] = Counter()  # of these, by room: carried out twice
        self.unanswered = 0  # of these: carried out, and the answer lost
        self.unhinted = 0  # hints that were lost
        self.far = 0  # of these: so long on the way as nobody usually is
        self.taken = 0  # that the store refused because an id is taken
        self.refused = 0  # that the store refused for what they say
        self.refused_writes = 0  # commits that the store refused for want of room
        self.starved = 0  # beats that say of somebody that he starves
        self.down = False  # the machine of the store has no power
        self.folder = ""  # of its file; no line of the trace names it, for it is another one each time
        self.ambush: Callable[[Life, str, object], None] | None = None  # called between the commit and its answer
        self.detains: Callable[[Letter], bool] | None = None  # called when a request arrives: it stays on its way
        self._loop = loop
        self.store = store
        self._checker = checker
        self._chance = chance
        self._note = note
        self._ground = Life("store", loop).context  # which nothing ever happens to
        self._ears: dict[Hint, list[tuple[Life, Callable[[], None]]]] = {whom: [] for whom in Hint}
        self._not_given_back: set[tuple[str, str]] = set()  # processes and rooms: the last goodbye found no store
        self._beats: dict[str, deque[float]] = {}
        self._reasons: dict[str, deque[float]] = {}  # to beat
        self.leased: Callable[[tuple[Any, ...], list[AttemptRow]], None] | None = None  # called after a fresh lease
        self.listen_to(store)

    def listen_to(self, store: Store) -> None:
        """Hear the hints of a store."""
        for whom in Hint:
            store.listen(whom, lambda whom=whom: self._hint(whom))  # type: ignore[misc] # bound now

    @classmethod
    async def opened(cls, env: Env, clock: Clock, *, embedded: bool) -> Store:
        """Open the store of a new world; `embedded`: one process owns it, and its leases never end."""
        return await open_store(MEMORY, env, clock=clock, lasting_leases=embedded)

    async def own(self) -> None:
        """Do what opening a file as its owner does: whoever had it before is provably dead."""
        await vars(self.store)["_lanes"].write(lambda db: end_owned(db, lambda _: False))

    def close(self) -> None:
        """Let go of what the store has outside of this process."""

    async def call(self, life: Life, room: str, door: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the door gives
        """Send one message, and wait for its answer; what the dead send goes nowhere."""
        if life.dead:
            return await self._loop.create_future()
        self.messages += 1
        if door in ("attend", "take", "join"):
            self._checker.processes[args[0]] = life.name
            if door != "join":
                self._checker.owners[life.name] = args[0]
        if door in ("lease", "lease_limited") and life.name in self._checker.draining:
            self._checker.violated("I10", f"{life.name} drains, and asks for more")
        self._check_pace(life, door)
        self.starved += bool(kwargs.get("starved"))
        journey = self._journey()
        if journey.lasting > SLOW_FROM:
            self._hold_up(life, door, journey.lasting)
            if room == "scheduler" or (room == "agent" and door not in HEARD_BESIDE):
                self.silences.hold_up(life.name, journey.lasting)
        answer: asyncio.Future[Any] = self._loop.create_future()
        letter = Letter(life, room, door, self._sealed(door, args), kwargs, journey, answer)
        if journey.there is not None:
            self._loop.call_later(journey.there, self._arrive, letter, context=self._ground)
            if journey.again is not None and door not in HEARD_TWICE:
                self.doubled[room] += 1
                same = kwargs | {"again": True} if door == "turn" else kwargs  # a turn that is sent again says so
                twin = Letter(life, room, door, letter.args, same, Journey(0, None), self._loop.create_future())
                self._loop.call_later(journey.there + journey.again, self._arrive, twin, context=self._ground)
            self.far += journey.there + (journey.back or 0) > 2 * USUALLY_SLOWEST
        if journey.there is None or journey.back is None:
            self.lost += 1
            self.unanswered += journey.there is not None
            self._loop.call_later(PATIENCE, letter.give_up, context=life.context)
        return await answer

    def strike(self, life: Life, door: str, result: object) -> None:
        """Let whoever lies in wait know that a process is here."""
        if self.ambush is not None:
            self.ambush(life, door, result)

    def listen(self, life: Life, whom: Hint, wake: Callable[[], None]) -> Callable[[], None]:
        """Bring hints to a process while it lives."""
        ear = (life, wake)
        self._ears[whom].append(ear)
        return lambda: self._ears[whom].remove(ear) if ear in self._ears[whom] else None

    def reaches(self, life: Life) -> bool:
        """Say whether what a process sends arrives at all."""
        return not self.waits.is_cut(life.name)

    def leaves_uncleanly(self, life: Life) -> None:
        """Note that a stopped process cannot give back what it has: others find that as after a crash."""
        if life.name in self._checker.stopping | self._checker.draining:
            self._checker.hurt.add(life.name)

    def has_stopped(self, life: Life) -> None:
        """Note that a process ends because it was asked to; if the store was away in its last moments, uncleanly."""
        if any(name == life.name for name, _ in self._not_given_back):
            self.leaves_uncleanly(life)

    def _note_goodbye(self, letter: "Letter", *, arrived: bool) -> None:
        """Note whether what a process has to give back was given back, or found the store away."""
        if (letter.room, letter.door) not in GOODBYES:
            return
        whose = letter.life.name, letter.room
        (self._not_given_back.discard if arrived else self._not_given_back.add)(whose)

    def _hold_up(self, life: Life, door: str, seconds: float) -> None:
        if door != "learn":  # nobody waits for that answer
            self.waits.hold_up(life.name, seconds + (PAUSE if seconds == PATIENCE else 0.0))

    def _check_pace(self, life: Life, door: str) -> None:
        """See whether an agent beats although nothing has happened."""
        if door not in ("report", "beat"):
            return
        now, reasons = self._loop.time(), self._reasons.setdefault(life.name, deque())
        if door == "report":
            reasons.append(now)
        else:
            beats = self._beats.setdefault(life.name, deque())
            beats.append(now)
            for times in (beats, reasons):
                while times and times[0] < now - 1:
                    times.popleft()
            if len(beats) > BEATS + 2 * len(reasons):
                self._checker.violated("I17", f"{life.name} beats {len(beats)} times in a second: it goes in circles")

    def _journey(self) -> Journey:
        weather, chance = self.weather, self._chance
        there, back = chance.within(0.0002, 0.02), chance.within(0.0002, 0.02)
        if weather.slow and chance.happens(weather.slow):
            there = chance.within(0.01, weather.slowest)
        if weather.slow and chance.happens(weather.slow):
            back = chance.within(0.01, weather.slowest)
        dice = chance.fraction()
        if dice < weather.lost_requests:
            return Journey(None, None)
        if dice < weather.lost_requests + weather.lost_replies:
            # Carried out before the caller asks again: what arrives after a newer message is not of this world yet.
            return Journey(min(there, PATIENCE * 0.9), None)
        again = chance.within(0, back) if weather.repeated and chance.happens(weather.repeated) else None
        return Journey(there, back, again)

    def _sealed(self, door: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Give what is in the message now: whatever the caller does with it later is not."""
        if door == "turn":
            parts: dict[str, Any] = msgspec.structs.asdict(args[0])
            return (Turn(**{name: part.copy() if hasattr(part, "copy") else part for name, part in parts.items()}),)
        if door == "take" and self._chance.happens(self.weather.contended):
            owner, shards, lasting = args
            free = [shard for shard in shards if self._chance.happens(0.5)]
            return owner, free, lasting
        return args

    def _arrive(self, letter: "Letter") -> None:
        if self.detains is not None and self.detains(letter):
            self._hold_up(letter.life, letter.door, DETAINED)
            self._loop.call_later(DETAINED, self._arrive, letter, context=self._ground)
            return
        if self.local and letter.life.dead:
            return
        if not self.reaches(letter.life):
            self.lost += 1
            if self.waits.is_cut(EVERYBODY):
                self._note_goodbye(letter, arrived=False)
            self._hold_up(letter.life, letter.door, PATIENCE)  # perhaps for longer than it is cut off
            self._loop.call_later(PATIENCE, letter.give_up, context=letter.life.context)
            return
        self._loop.create_task(self._carry_out(letter), context=self._ground)

    async def _carry_out(self, letter: "Letter") -> None:
        checker, door, args = self._checker, letter.door, letter.args
        self._note_goodbye(letter, arrived=True)
        since = checker.transactions
        fences = checker.newest_fences(args[1]) if door == "report" else []
        result: Any = None
        failure: Exception | None = None
        try:
            result = await self._perform(letter)
        except Exception as error:
            failure = error
            if not isinstance(error, DuplicateRun) and not self._may_raise(letter, error):
                checker.violated("I0", f"door {door} of {letter.life.name} raised {error!r}")
        if failure is None and door == "turn" and result.applied:
            checker.check_turn(args[0], since)
        elif failure is None and door == "report":
            checker.check_report(args[1], result, fences)
        elif failure is None and door == "lease" and self.leased is not None and checker.transactions > since:
            self.leased(args, result)
        self.strike(letter.life, door, result)
        self._note(letter.life.name, door, _summary(result) if failure is None else repr(failure))
        if letter.journey.back is not None:
            self._bring(letter, letter.journey.back, result, failure)

    def _bring(self, letter: "Letter", seconds: float, result: object, failure: Exception | None) -> None:
        """Bring the answer to a message, after so many seconds."""
        self._loop.call_later(seconds, letter.answer_with, result, failure, context=letter.life.context)

    async def _perform(self, letter: "Letter") -> Any:  # noqa: ANN401 - whatever the door gives
        """Let the store do what a message asks for."""
        return await getattr(getattr(self.store, letter.room), letter.door)(*letter.args, **letter.kwargs)

    def _may_raise(self, letter: "Letter", error: Exception) -> bool:
        """Say whether a door may raise that in this world."""
        return False

    async def wait_after(self, error: StoreUnreachableError) -> None:
        """Let a client wait before it asks again; there was no answer to wait for here, for long enough."""

    def excuses(self, note: str) -> bool:
        """Say whether a turn may fail with that note in this world."""
        return False

    def doors(self, life: Life, room: str) -> "Doors":
        """Give the doors of one room, as a process has them."""
        return SchedulerDoors(self, life, room) if room == "scheduler" else Doors(self, life, room)

    def health(self, life: Life, clock: Clock) -> Health:
        """Give what a process knows of how the store answers it."""
        return self.store.health

    def _hint(self, whom: Hint) -> None:
        for life, wake in self._ears[whom]:
            if life.dead or not self.reaches(life):
                continue
            if self._chance.happens(self.weather.lost_hints):
                self.unhinted += 1
            else:
                self._reasons.setdefault(life.name, deque()).append(self._loop.time())
                self._loop.call_later(self._chance.within(0.0002, 0.02), wake, context=life.context)


class Letter:
    """One message on its way."""

    __slots__ = ("_answer", "args", "door", "journey", "kwargs", "life", "room", "sent")

    def __init__(  # noqa: PLR0913 - what a message is
        self,
        life: Life,
        room: str,
        door: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        journey: Journey,
        answer: "asyncio.Future[Any]",
    ) -> None:
        self.life = life
        self.room = room
        self.door = door
        self.args = args
        self.kwargs = kwargs
        self.journey = journey
        self.sent = answer.get_loop().time()
        self._answer = answer

    def answer_with(self, result: object, failure: Exception | None) -> None:
        """Bring the answer."""
        if self._answer.done():
            return
        if failure is not None:
            self._answer.set_exception(failure)
        else:
            self._answer.set_result(result)

    def give_up(self) -> None:
        """Believe that no answer will come."""
        if not self._answer.done():
            self._answer.set_exception(StoreUnreachableError(f"no answer to {self.door!r} within {PATIENCE:g} s"))


class Doors:
    """The doors of one room of the store, from afar."""

    def __init__(self, network: Network, life: Life, room: str) -> None:
        self._network = network
        self._life = life
        self._room = room

    def __getattr__(self, door: str) -> Callable[..., Any]:
        """Give a door: whatever is handed in there is a message."""
        network, life, room = self._network, self._life, self._room

        def call(*args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:  # noqa: ANN401 - passed through
            return network.call(life, room, door, args, kwargs)

        setattr(self, door, call)
        return call


class SchedulerDoors(Doors):
    """The doors of a scheduler: what it knows without a message is no message."""

    def moves(self) -> int:
        """Give 0: this store is never another server."""
        return 0


class FarStore:
    """The store as one process sees it."""

    url = "simulated"

    def __init__(self, network: Network, life: Life, clock: Clock | None = None) -> None:
        self.lasting_leases = network.local
        self.hinted = True
        self.region: str | None = None
        self.health = network.store.health if clock is None else network.health(life, clock)
        self._network = network
        self._life = life
        self.client = cast(ClientStore, network.doors(life, "client"))
        self.scheduler = cast(SchedulerStore, network.doors(life, "scheduler"))
        self.agent = cast(AgentStore, network.doors(life, "agent"))
        self.supervisor = cast(SupervisorStore, network.doors(life, "supervisor"))
        self.transactions = network.store.transactions  # plans only: no simulated step has a connection of its own

    def listen(self, whom: Hint, wake: Callable[[], None], *, elsewhere: bool = False) -> Callable[[], None]:
        """Hear hints, unless they are lost; one's own come back, too."""
        return self._network.listen(self._life, whom, wake)

    async def close(self) -> None:
        """Do nothing: the store is not this process's."""


def _summary(result: object) -> str:
    if isinstance(result, Sequence) and not isinstance(result, str | bytes):
        return str(len(result))
    applied = getattr(result, "applied", None)
    return "" if applied is None else str(applied)


def at(moment: Micros) -> str:
    """Write a moment of virtual time."""
    return f"{moment / 1_000_000:.6f}"
