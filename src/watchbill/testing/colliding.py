"""Colliding: ids that are drawn twice, as by two processes that have one number and draw in one tick."""

from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from watchbill.errors import IdTakenError
from watchbill.testing.chance import Chance
from watchbill.testing.envs import Ids
from watchbill.testing.network import Letter, Network
from watchbill.testing.virtual import VirtualLoop

AGAIN: Final = 0.5  # of draws: an id that was drawn before
APART: Final = 12  # draws after such a one that are new: whoever draws again because of it gets others
REMEMBERED: Final = 40
INCIDENT: Final = "UNIQUE constraint failed: incident.id"
WITHIN: Final = 5.0  # seconds: an id that was drawn longer ago is in no tick of another process


class CollidingIds(Ids):
    """Some ids are drawn twice. That of a process is its own: two under one id are not told apart by any store."""

    def __init__(
        self, loop: VirtualLoop, chance: Chance, counts: Counter[str], is_there: Callable[[int], bool]
    ) -> None:
        """`is_there`: a row or run has that id now. One that is gone was not drawn in this tick."""
        super().__init__(loop)
        self._is_there = is_there
        self._time = loop.time
        self._chance = chance
        self._counts = counts
        self._recent: deque[tuple[float, int, object]] = deque(maxlen=REMEMBERED)
        self._new = 0  # since the last one that was drawn twice
        self._taken: set[tuple[int, object]] = set()  # ids that were drawn again, and by which process

    def new(self, nth: int = 1, by: object = None) -> int:
        """Make one; `nth`: of its process; `by`: that process, which itself never draws an id twice."""
        self._new += 1
        if nth > 1 and self._new > APART and self._chance.happens(AGAIN):
            recent = [id for at, id, who in self._recent if at > self._time() - WITHIN and who is not by]
            there = [id for id in recent if (id, by) not in self._taken and self._is_there(id)]
            if there:
                self._new = 0
                self._counts["ids drawn twice"] += 1
                id = self._chance.choose(there)
                self._taken.add((id, by))
                return id
        id = super().new()
        if nth > 1:
            self._recent.append((self._time(), id, by))
        return id


class CollidingNetwork(Network):
    """To a store that refuses ids which are taken."""

    def excuses(self, note: str) -> bool:
        """The insert of an incident fails, and the next look draws another id (`docs/design/ids.md`)."""
        return INCIDENT in note

    def _may_raise(self, letter: Letter, error: Exception) -> bool:
        taken = isinstance(error, IdTakenError) or (letter.room == "supervisor" and INCIDENT in str(error))
        self.taken += taken
        return taken
