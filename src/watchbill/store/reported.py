"""Reported: what agents have reported lately, to say it again to a server that has lost it.

An agent forgets an attempt when its report is answered. A promoted standby that has lost that report still says that
the agent runs the attempt, and the agent is alive: nothing would ever end it.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from watchbill.clock import SECOND, Clock, Micros
from watchbill.model.agent import Act, Report
from watchbill.model.failure import Cause, Failure
from watchbill.model.states import AttemptState

KEPT_FOR: Final[Micros] = 60 * SECOND  # a standby that lags further behind loses reports: their attempts are lost
KEPT_BYTES: Final = 32 << 20
APART: Final[Micros] = SECOND  # between two looks at what an agent runs: a row may be there before its agent has it
LOST: Final = msgspec.json.encode(Failure("Lost", "the store has lost the report of how it ended", cause=Cause.LOST))
_CHECKPOINT: Final = Act.CHECKPOINT.value  # once: to look up a member of an enum costs more than to compare it

Key = tuple[int, int]  # row and fence
Read = Callable[[str, Mapping[str, object]], Awaitable[Sequence[Any]]]  # rows of a statement of the store, by its name


class Kept(NamedTuple):
    """Reports that were answered together."""

    at: Micros
    reports: list[Report]
    size: int


class Look(NamedTuple):
    """What an agent does not hold though the store says that it runs it, as it was found by the last look."""

    again_at: Micros
    found: frozenset[Key]


class Reported:
    """Reports of all agents of this process, and which of the agents have still to be compared with the store."""

    def __init__(self, clock: Clock, moves: Callable[[], int], read: Read) -> None:
        """`moves`: how often the server has become another one; `read`: how rows are read from it."""
        self._clock = clock
        self._server_moves = moves
        self._read = read
        self._kept: deque[Kept] = deque()
        self._size = 0
        self._moves: dict[int, int] = {}
        self._looks: dict[int, Look] = {}

    def answered(self, reports: Sequence[Report]) -> None:
        """Keep reports that the store has answered."""
        ends = [report for report in reports if report.act != _CHECKPOINT]
        if not ends:
            return
        now, size = self._clock.boot(), sum([len(report.body) for report in ends if report.body])
        self._kept.append(Kept(now, ends, size))
        self._size += size
        while self._kept and (self._size > KEPT_BYTES or now - self._kept[0].at > KEPT_FOR):
            self._size -= self._kept.popleft().size

    def joined(self, agent: int) -> None:
        """Take note of the server on which an agent has joined."""
        self._moves[agent] = self._server_moves()
        self._looks.pop(agent, None)

    async def unanswered(self, agent: int, held: Collection[Key], lasting: Micros | None) -> list[Report]:
        """Give what is to be reported again, or as lost, to a server that has not heard of it; mostly nothing.

        `held`: all that the agent runs, or is about to report.
        """
        moves, boot = self._server_moves(), self._clock.boot()
        if moves != self._moves.setdefault(agent, moves):
            self._moves[agent] = moves
            self._looks[agent] = Look(boot + (lasting or 0), frozenset())
            return await self._running([report for kept in self._kept for report in kept.reports])
        look = self._looks.get(agent)
        if look is None or boot < look.again_at:
            return []
        rows = await self._read("rows_of_agent", {"agent": agent})
        found = frozenset((id, fence) for id, fence in rows) - set(held)
        if found - look.found:
            self._looks[agent] = Look(boot + APART, found)
        else:
            del self._looks[agent]
        return [Report(id, fence, Act.DIED, LOST) for id, fence in sorted(found & look.found)]

    async def _running(self, reports: Sequence[Report]) -> list[Report]:
        """Leave out what the server has heard of: it says so no more."""
        ids = sorted({report.id for report in reports})
        rows = await self._read("report_rows", {"ids": ids}) if ids else []
        running = {(id, fence) for id, fence, state, *_ in rows if state == AttemptState.RUNNING}
        return [report for report in reports if (report.id, report.fence) in running]
