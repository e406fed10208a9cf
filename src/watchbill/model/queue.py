"""Queue: where the rows of one set of needs wait for an agent."""

from typing import NamedTuple


class QueueRow(NamedTuple):
    """A queue as agents read it: those serve it who meet its needs."""

    id: int
    needs: tuple[str, ...]  # as `written`
    uses: str  # the name of the dependency behind which it waits, or nothing
    limited: bool  # its rows wait for more than an agent with room
