"""Queue: where the rows of one set of needs wait for an agent."""

from typing import Final, NamedTuple

from watchbill.clock import Micros

DEPTH_COUNTED: Final = 10_000  # more is simply a lot, and counting it would cost more than knowing it is worth
PASSED_OVER: Final = 10 * DEPTH_COUNTED  # rows of a queue that are looked at while something is paused


class QueueRow(NamedTuple):
    """A queue as agents read it: those serve it who meet its needs."""

    id: int
    needs: tuple[str, ...]  # as `written`
    uses: str  # the name of the dependency behind which it waits, or nothing
    limited: bool  # its rows wait for more than an agent with room

    @property
    def gated(self) -> bool:
        """True when it must be asked as gates want it: its rows have a limit, or their dependency may be troubled."""
        return self.limited or bool(self.uses)


class QueueDepth(NamedTuple):
    """What waits in a queue, and who is there for it."""

    namespace: str
    id: int
    region: str
    needs: tuple[str, ...]
    uses: str
    limited: bool
    depth: int  # rows that are ready; not counted beyond DEPTH_COUNTED
    oldest: Micros  # since when the oldest waits, by its rank: a head start by priority, and retries, count as waiting
    served_by: int  # agents that are alive, in time and wanted, and have by name all that it asks for
    running: int
    paused: int = 0  # of those that are ready, how many wait for what is paused: a limit, their step or workflow
    stopped: bool = False  # its dependency is down, or somebody has paused what it uses or needs: nothing starts
    oldest_moving: Micros | None = None  # where something is paused: since when the oldest waits that it does not keep

    @property
    def moving(self) -> int:
        """How many could start: neither is their queue stopped nor anything of theirs paused."""
        return 0 if self.stopped else self.depth - self.paused

    @property
    def age(self) -> Micros:
        """For how long the first of those that could start waits."""
        if not self.moving:
            return 0
        return self.oldest if self.oldest_moving is None else self.oldest_moving


def with_pauses(queue: QueueDepth, moving: int | None, oldest: Micros | None) -> QueueDepth:
    """Give a queue with what nothing paused keeps there; None: nothing is paused that could keep one of its rows."""
    if moving is None:
        return queue
    return queue._replace(paused=max(0, queue.depth - moving), oldest_moving=oldest or 0)
