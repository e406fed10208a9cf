"""Full: a server that refuses every write for a while, because its disk is full or it became read-only.

Reads go on meanwhile. So a process hears the store all the time, and still no heartbeat, lease or report arrives there.
A disk that is nearly full refuses single writes: others of the same process are accepted just before and after.
"""

from collections.abc import Callable
from typing import Any, Final

from watchbill.clock import SECOND, Clock
from watchbill.errors import StoreUnreachableError
from watchbill.store.health import Health
from watchbill.store.sqlite.lanes import LONGEST_PAUSE
from watchbill.testing.chance import Chance
from watchbill.testing.links import EVERYBODY
from watchbill.testing.network import Letter, Network, WriteRefused
from watchbill.testing.virtual import Life, rest
from watchbill.testing.world import World

FIRST_AT: Final = (2.0, 8.0)  # seconds: while there is much to do
APART: Final = (3.0, 12.0)  # seconds between two of them
LEAST: Final = 3  # times
MOST: Final = 4
SHORT: Final = (1.0, 4.0)  # seconds: too short to cost a lease
LONGER: Final = (0.9, 1.5)  # leases: some have just ended when the disk has room
LONG: Final = (60.0, 100.0)  # seconds: longer than an agent goes on in silence
NEARLY: Final = 0.3  # of the times: only some writes are refused
SINGLE: Final = 0.25  # of writes, then
ASKED_AGAIN: Final = 0.5  # seconds after which a client asks again that was refused
HEARTBEATS: Final = frozenset({"attend", "renew", "beat", "stand"})
RESUMED_WITHIN: Final = LONGEST_PAUSE / SECOND + 1  # seconds after which everybody has tried again
WRITTEN_WITHIN: Final = 20.0  # seconds: an idle process writes its presence every 10 s
MEASURED_AFTER: Final = 45.0  # seconds: silence counts only one lease after the disk has room


class DiskNetwork(Network):
    """To a store whose disk refuses writes now and then."""

    def _may_raise(self, letter: Letter, error: Exception) -> bool:
        return isinstance(error, StoreUnreachableError)

    async def wait_after(self, error: StoreUnreachableError) -> None:
        """Let a client that was refused wait for a moment."""
        await rest(ASKED_AGAIN)


class FullNetwork(DiskNetwork):
    """To a server."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - passed through
        super().__init__(*args, **kwargs)
        self._health: dict[str, Health] = {}  # of processes, by name
        self.refuses: Callable[[], bool] = lambda: False  # asked about every commit that would write something
        writer = vars(vars(self.store)["_lanes"])["_writer"]
        commit = writer.commit

        def commit_or_refuse() -> bool:
            known = vars(writer)
            if known["_connection"].total_changes != known["_changes"] and self.refuses():
                writer.rollback()
                self.refused_writes += 1
                raise WriteRefused
            written: bool = commit()
            return written

        writer.commit = commit_or_refuse

    def health(self, life: Life, clock: Clock) -> Health:
        """Give what a process knows of how the store answers it: each has its own, by its own clock."""
        self._health[life.name] = health = Health("simulated", clock)
        return health

    async def call(self, life: Life, room: str, door: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the door gives
        """Send one message; a process remembers whether its heartbeats are accepted, as it does on PostgreSQL."""
        health = self._health.get(life.name)
        try:
            answer = await super().call(life, room, door, args, kwargs)
        except StoreUnreachableError as error:
            if health is not None and isinstance(error.__cause__, WriteRefused):
                health.heartbeats.refused()
            raise
        if health is not None and door in HEARTBEATS:
            health.heartbeats.accepted()
        return answer

    async def _perform(self, letter: Letter) -> Any:  # noqa: ANN401 - whatever the door gives
        try:
            return await super()._perform(letter)
        except WriteRefused as error:
            self.leaves_uncleanly(letter.life)
            raise StoreUnreachableError("store 'simulated' did not answer: its disk is full") from error


class FullDisk:
    """Fills the disk of a world, and frees it again."""

    def __init__(self, world: World, chance: Chance, suspend: Callable[[float], None]) -> None:
        self._world = world
        self._chance = chance
        self._suspend = suspend  # called with the seconds in which nothing can be measured
        self._healed = False
        self._fills = 0
        self._spans: list[tuple[float, float, bool]] = []
        at = chance.within(*FIRST_AT)
        leases = sorted({post.lease for post in world.posts})
        for _ in range(LEAST + chance.below(MOST - LEAST + 1)):
            lease = chance.choose(leases) / SECOND
            longer = LONGER[0] * lease, LONGER[1] * lease
            span = chance.within(*chance.choose((SHORT, longer, longer, longer, longer, longer, LONG)))
            self._spans.append((at, span, chance.happens(NEARLY)))
            at += span + chance.within(*APART)
        self.until = at  # no time is before, and none ends later

    def begin(self) -> None:
        """Set the times."""
        for at, span, nearly in self._spans:
            self._world.loop.call_later(at, self._fill, span, nearly)

    def heal(self) -> None:
        """Free the disk for ever."""
        self._healed = True
        self._free()

    def _fill(self, span: float, nearly: bool) -> None:
        if self._healed:
            return
        world, self._fills = self._world, self._fills + 1
        world.counts["faults"] += 1
        world.counts["disks nearly full" if nearly else "disks full"] += 1
        world.note("nemesis:", "the disk is nearly full for" if nearly else "the disk is full for", round(span, 3))
        self._refuse((lambda: self._chance.happens(SINGLE)) if nearly else (lambda: True))
        world.network.waits.hold_up(EVERYBODY, span + RESUMED_WITHIN)
        self._suspend(span + MEASURED_AFTER)
        world.loop.call_later(span, self._free)

    def _free(self) -> None:
        self._refuse(lambda: False)
        self._world.note("nemesis:", "the disk has room")
        self._expect_writes()

    def _refuse(self, refuses: Callable[[], bool]) -> None:
        if isinstance(self._world.network, FullNetwork):
            self._world.network.refuses = refuses

    def _expect_writes(self) -> None:
        """Check that a process which is up has written something in time."""
        world, fills, store = self._world, self._fills, self._world.network.store
        since = vars(store)["_lanes"].commits
        up = [(node, node.life) for node in world.nodes if node.up]

        def look() -> None:
            alive = any(node.up and node.life is life for node, life in up)
            reached = world.network.waits.held_up(EVERYBODY, world.loop.time() - WRITTEN_WITHIN) <= RESUMED_WITHIN
            same = fills == self._fills and world.network.store is store
            if same and alive and reached and vars(store)["_lanes"].commits == since:
                world.checker.violated("I10", f"{WRITTEN_WITHIN} s after the disk had room nothing was written")

        world.loop.call_later(WRITTEN_WITHIN, look)
