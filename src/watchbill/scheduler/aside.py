"""Aside: final rows and facts that a scheduler has read and cannot take in now. Its looks leave them out."""

from collections.abc import Collection

from watchbill.scheduler.residence import Residence
from watchbill.store.protocol import NOTHING_LEFT_OUT, LeftOut, Look


class Aside:
    """Remembers such items from look to look: a look is limited, so they would hide items of other runs.

    `waiting`: runs that get nothing now, because something else has to be done with them first.
    """

    def __init__(self, residence: Residence) -> None:
        self._residence = residence
        self._finals: set[int] = set()  # runs that have final rows
        self._facts: dict[int, set[int]] = {}  # of runs that wait

    def note(self, look: Look, waiting: Collection[int]) -> None:
        """Remember the items of a look that cannot be taken in; facts that a run cannot hear are in the residence."""
        self._finals.update([row.run for row in look.finals if self._is_aside(row.run, waiting)])
        if waiting:
            for fact in look.facts:
                if fact.run in waiting:
                    self._facts.setdefault(fact.run, set()).add(fact.id)

    def left_out(self, waiting: Collection[int]) -> LeftOut:
        """Give the items that the next look leaves out; items of runs that can take them are forgotten."""
        unheard = self._residence.unheard
        if not (self._finals or self._facts or unheard):
            return NOTHING_LEFT_OUT
        self._finals = {num for num in self._finals if self._is_aside(num, waiting)}
        self._facts = {num: ids for num, ids in self._facts.items() if num in waiting}
        facts = {id for by_run in (unheard, self._facts) for ids in by_run.values() for id in ids}
        return LeftOut(tuple(sorted(self._finals)), tuple(sorted(facts)))

    def _is_aside(self, num: int, waiting: Collection[int]) -> bool:
        return num in waiting or (num in self._residence.asleep and num not in self._residence.runs)
