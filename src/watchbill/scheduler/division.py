"""Division: a turn that the store refuses, divided by the runs that it is about. Pure: a turn in, turns out."""

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Final

from watchbill.store.protocol import Turn

Origin = int | str  # the number of a run, or the name of a schedule
_NOBODY: Final = 0  # the run of what belongs to no run in memory


class TooMuchError(Exception):
    """The store answers, but did not answer to a turn, again and again: it may be too large, or take too long."""


class Division:
    """The parts of one turn, one for each run and each schedule."""

    def __init__(self, turn: Turn, run_of: Mapping[int, int], tellers: Sequence[int]) -> None:
        """`run_of`: the run behind each row, fact and started run; `tellers`: behind each fact for another run."""
        self._turn = turn
        self._parts: dict[Origin, Turn] = {}
        self._divide(run_of, tellers)

    @property
    def origins(self) -> list[Origin]:
        """All runs and schedules of the turn."""
        return list(self._parts)

    def turn(self, origins: Collection[Origin]) -> Turn:
        """Make one turn of the parts of some runs and schedules."""
        whole = Turn(self._turn.owner, self._turn.terms)
        for origin in origins:
            if isinstance(origin, int) and origin in self._turn.after:
                whole.after[origin] = self._turn.after[origin]
            part = self._parts[origin]
            for name in _LISTS:
                getattr(whole, name).extend(getattr(part, name))
        if finals := self._turn.finals:
            whole.finals = {id: finals[id] for id in whole.finals_done if id in finals}
        return whole

    def _divide(self, run_of: Mapping[int, int], tellers: Sequence[int]) -> None:
        turn, of = self._turn, self._part
        for name, origin_of in _ORIGINS.items():
            for item in getattr(turn, name):
                getattr(of(origin_of(item)), name).append(item)
        for name, id_of in _IDS.items():
            for item in getattr(turn, name):
                getattr(of(run_of.get(id_of(item), _NOBODY)), name).append(item)
        for run, fact in zip(tellers, turn.facts, strict=True):
            of(run).facts.append(fact)

    def _part(self, origin: Origin) -> Turn:
        part = self._parts.get(origin)
        if part is None:
            part = self._parts[origin] = Turn(self._turn.owner, self._turn.terms)
        return part


_first: Callable[..., int] = itemgetter(0)
_run: Callable[..., int] = attrgetter("run")
_num: Callable[..., int] = attrgetter("num")

# How each part of a turn names its run or schedule.
_ORIGINS: Final[Mapping[str, Callable[..., Origin]]] = {
    "journal": _first,
    "attempts": _run,
    "runs": _num,
    "decisions": _run,
    "holds": _first,
    "failed": _run,
    "schedules": attrgetter("name"),
}
# The parts that name a row, a fact or a new run instead.
_IDS: Final[Mapping[str, Callable[..., int]]] = {
    "facts_done": int,
    "finals_done": int,
    "dropped": int,
    "decided": int,
    "released": int,
    "asked_again": _first,
    "starts": _num,
}
_LISTS: Final = (*_ORIGINS, *_IDS, "facts")


def size_of(turn: Turn) -> int:
    """Add up the bytes of all bodies in a turn."""
    bodies: list[bytes | None] = [entry[-1] for entry in turn.journal]
    bodies += [body for row in turn.attempts for body in (row.args, row.result)]
    bodies += [fact.body for fact in turn.facts]
    bodies += [run.input for run in turn.starts]
    bodies += [change.published for change in turn.runs]
    return sum([len(body) for body in bodies if body is not None])


def halves(origins: Sequence[Origin]) -> tuple[Sequence[Origin], Sequence[Origin]]:
    """Divide a list of runs and schedules into two."""
    middle = len(origins) // 2
    return origins[:middle], origins[middle:]
