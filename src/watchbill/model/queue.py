"""Queue: where the rows of one set of needs wait for an agent."""

from typing import Final, NamedTuple

from watchbill.clock import Micros

DEPTH_COUNTED: Final = 10_000  # more is simply a lot, and counting it would cost more than knowing it is worth


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
    paused: int = 0  # of those that are ready, how many wait behind gates that are paused; counted likewise
    stopped: bool = False  # its dependency is down, or somebody has paused what it uses or needs: nothing starts
