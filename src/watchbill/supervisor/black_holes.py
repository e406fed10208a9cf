"""Black holes: agents that fail where others succeed. Pure: what agents say of what they did, and the time, go in.

A host whose disk is full, or whose credential has run out, fails fast: so it is idle soonest, draws most of the work,
and uses up the retries of runs that are well. It is told from a step, an input or a dependency that is ill by
comparison: the others did the same, at the same time, and did also what it had failed.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import exp, lgamma
from typing import Final, NamedTuple

from watchbill.clock import SECOND, Micros
from watchbill.model.breaker import IN_A_ROW, SHARE
from watchbill.model.doings import (
    ILL_SLOTS,
    REMEMBERED,
    SLOT,
    Doer,
    Tally,
    Work,
    fails_most,
    fails_much,
    may_be_ill,
    read_doings,
    slot_of,
)

TOGETHER: Final = 2  # runs that it failed: one run may fail by what it was given
FEW: Final = 0.2  # of what the others did may fail, and of what had failed elsewhere: else it is not the agent
CURED: Final = 2  # calls that others did after they had failed: what fails everywhere is not the agent's fault
TOLD_WITHIN: Final[Micros] = SECOND  # of its end what an agent did is in what it says: a beat takes a moment to arrive
# That it only looks so, with everybody equally ill: who looks every two seconds is wrong about an agent once in sixty
# years, if looks had nothing in common; they have, so it is less often.
UNLIKELY: Final = 1e-9


class Sum(NamedTuple):
    """How some work has ended."""

    ends: int = 0
    failed: int = 0
    cured: int = 0
    in_vain: int = 0

    def plus(self, tally: Tally) -> "Sum":
        """Add to it."""
        return Sum(
            self.ends + tally.done + tally.failed,
            self.failed + tally.failed,
            self.cured + tally.cured,
            self.in_vain + tally.in_vain,
        )

    @property
    def firsts(self) -> int:
        """How many of them had not failed before."""
        return self.ends - self.cured - self.in_vain

    @property
    def failed_firsts(self) -> int:
        """How many of these failed."""
        return self.failed - self.in_vain

    def minus(self, part: "Sum") -> "Sum":
        """Take off what is a part of it."""
        ends, failed, cured, in_vain = part
        return Sum(self.ends - ends, self.failed - failed, self.cured - cured, self.in_vain - in_vain)


NONE: Final = Sum()


class BlackHole(NamedTuple):
    """An agent that fails where others succeed, and by what that shows."""

    doer: Doer
    work: Work
    mine: Sum
    others: Sum
    compared: tuple[int, ...]  # the others
    runs: tuple[str, ...]  # some that it has failed
    error: str
    chance: float  # that it only looks so

    @property
    def why(self) -> str:
        """The figures, in words."""
        last = f", the last with {self.error}" if self.error else ""
        many = "another agent" if len(self.compared) == 1 else f"{len(self.compared)} other agents"
        return (
            f"of step {self.work.step!r} it failed {self.mine.failed} of {self.mine.ends} attempts within"
            f" {REMEMBERED // SECOND} s{last}; at the same time {many} failed {self.others.failed} of"
            f" {self.others.ends}, and did {self.others.cured} that had failed before"
        )


class Book:
    """What all did of one kind of work: by agent, and summed up once, so that one's own part is taken off it."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.by_agent: dict[int, dict[int, Tally]] = {}  # by slot
        self.suspects: list[int] = []  # agents that fail enough to be compared
        self._by_slot: dict[int, Sum] = {}
        self._doers: dict[int, int] = {}  # by slot: how many agents
        self._all = Sum()

    def enter(self, agent: int, tally: Tally) -> None:
        """Write down what an agent did."""
        self.by_agent.setdefault(agent, {})[tally.slot] = tally

    def sum_up(self) -> None:
        """Sum up what is written down."""
        for agent, own in self.by_agent.items():
            for slot, tally in own.items():
                self._by_slot[slot] = self._by_slot.get(slot, NONE).plus(tally)
                self._doers[slot] = self._doers.get(slot, 0) + 1
            if fails_much(own.values()):
                self.suspects.append(agent)
        self._all = _total(self._by_slot.values())

    def forget(self, agent: int) -> None:
        """Take out what an agent did."""
        own = self.by_agent.pop(agent, {})
        for slot, tally in own.items():
            self._by_slot[slot] = self._by_slot[slot].minus(NONE.plus(tally))
            self._doers[slot] -= 1
        self._all = self._all.minus(_sum(own.values()))
        self.suspects = [suspect for suspect in self.suspects if suspect != agent]

    def shared(self, agent: int) -> list[int]:
        """Give the slots in which both this agent and others have ended something."""
        return sorted(slot for slot in self.by_agent[agent] if self._doers[slot] > 1)

    def beside(self, agent: int, slots: Sequence[int]) -> Sum:
        """Sum up what the others did in these slots."""
        own = self.by_agent[agent]
        return _total(self._by_slot[slot] for slot in slots).minus(_sum(own[slot] for slot in slots))

    def others(self, agent: int) -> Sum:
        """Sum up all that the others did."""
        return self._all.minus(_sum(self.by_agent[agent].values()))

    def compared(self, agent: int, slots: Sequence[int]) -> tuple[int, ...]:
        """Give the others who have ended something in these slots."""
        others = ((id, own) for id, own in self.by_agent.items() if id != agent)
        return tuple(sorted(id for id, own in others if _sum(own[slot] for slot in slots if slot in own).ends))


def black_holes(doers: Sequence[Doer], now: Micros) -> list[BlackHole]:
    """Find them, the most certain first; who is found is no comparison for the others any more."""
    there = {doer.id: doer for doer in doers if doer.suspension is None and doer.wanted}
    books = _books(list(there.values()), now)
    found: list[BlackHole] = []
    while True:
        holes = [hole for book in books for id in book.suspects for hole in _compared(there[id], book)]
        if not holes:
            return found
        found.append(min(holes, key=lambda hole: (hole.chance, hole.doer.id, hole.work)))
        for book in books:
            book.forget(found[-1].doer.id)


def _books(doers: Sequence[Doer], now: Micros) -> list[Book]:
    """Write down what all did of what somebody fails: of the others nothing is read while nobody does."""
    ill = [
        (doer, tally.work) for doer in doers if may_be_ill(doer.doings) for tally in _of_late(doer, now) if tally.failed
    ]
    books = {(doer.namespace, work): Book(work) for doer, work in ill}
    namespaces = {namespace for namespace, _ in books}
    for doer in doers:
        if doer.namespace not in namespaces:
            continue
        for tally in _of_late(doer, now):
            book = books.get((doer.namespace, tally.work))
            if book is not None:
                book.enter(doer.id, tally)
    for book in books.values():
        book.sum_up()
    return list(books.values())


def _of_late(doer: Doer, now: Micros) -> Iterator[Tally]:
    """Give what counts: of the last minute, told to the end of its slot, and nothing that is forgiven."""
    oldest, told_to = slot_of(now - REMEMBERED), slot_of(doer.beat_at - TOLD_WITHIN)
    for tally in read_doings(doer.doings).tallies:
        if oldest < tally.slot < told_to and tally.slot * SLOT >= doer.judged_from:
            yield tally


def _compared(doer: Doer, book: Book) -> Iterator[BlackHole]:
    """Hold what one agent did against what the others did at the same time."""
    own, shared = book.by_agent[doer.id], book.shared(doer.id)
    mine = _sum(own[slot] for slot in shared)
    if mine.failed < IN_A_ROW or mine.failed < SHARE * mine.ends or not _lasts([own[slot] for slot in shared]):
        return
    theirs, again = book.beside(doer.id, shared), book.others(doer.id)
    runs = tuple(dict.fromkeys(run for slot in shared for run in own[slot].runs))
    if len(runs) < TOGETHER or theirs.failed > FEW * theirs.ends:
        return
    if again.cured < CURED or again.in_vain > FEW * (again.cured + again.in_vain):
        return
    if again.failed_firsts > FEW * again.firsts:
        return  # what fails whoever tries it first, and is done the second time: that is tried elsewhere
    chance = chance_of(mine, theirs)
    if chance <= UNLIKELY:
        compared, error = book.compared(doer.id, shared), read_doings(doer.doings).error
        yield BlackHole(doer, book.work, mine, theirs._replace(cured=again.cured), compared, runs, error, chance)


def _sum(tallies: Iterable[Tally]) -> Sum:
    total = NONE
    for tally in tallies:
        total = total.plus(tally)
    return total


def _total(sums: Iterable[Sum]) -> Sum:
    return Sum(*map(sum, zip(NONE, *sums, strict=True)))


def _lasts(own: Sequence[Tally]) -> bool:
    """Say whether it fails most in several slots, and still in the newest."""
    ill = [fails_most(tally) for tally in own]
    return sum(ill) >= ILL_SLOTS and ill[-1]


def chance_of(mine: Sum, others: Sum) -> float:
    """Say how likely it is that so many of all failures, or more, are one agent's, if all are equally ill.

    The tail of a hypergeometric distribution: as many failures as there are, dealt out to all ends alike.
    """
    ends, failed = mine.ends + others.ends, mine.failed + others.failed
    all_ways = _ways(ends, failed)
    total = 0.0
    for own in range(mine.failed, min(mine.ends, failed) + 1):
        if failed - own > others.ends:
            continue
        part = exp(_ways(mine.ends, own) + _ways(others.ends, failed - own) - all_ways)
        total += part
        if part < total * 1e-12:
            break
    return min(1.0, total)


def _ways(of: int, chosen: int) -> float:
    """Give the logarithm of the number of ways to choose some of many."""
    return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)
