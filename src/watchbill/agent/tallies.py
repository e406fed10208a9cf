"""Tallies: what an agent counts of how its attempts end, until it is forgotten. In memory: a success writes nothing."""

from typing import Final

from watchbill.clock import Micros
from watchbill.model.doings import (
    MOST_RUNS,
    MOST_WORKS,
    REMEMBERED,
    SLOT,
    Doings,
    Tally,
    Trial,
    Work,
    encode,
    slot_of,
)

KEPT: Final = REMEMBERED // SLOT  # slots


class Count:
    """What has ended of one kind within one slot."""

    __slots__ = ("cured", "done", "failed", "in_vain", "runs")

    def __init__(self) -> None:
        self.done = self.failed = self.cured = self.in_vain = 0
        self.runs: list[str] = []


class Tallies:
    """The ends of the last minute."""

    def __init__(self) -> None:
        self._slots: dict[int, dict[Work, Count]] = {}
        self._error = ""

    def done(self, work: Work, at: Micros, *, again: bool) -> None:
        """Count an attempt that was done; `again`: one before it had failed."""
        count = self._of(work, at)
        count.done += 1
        count.cured += again

    def failed(self, work: Work, at: Micros, run: str, error: str, *, again: bool) -> None:
        """Count an attempt that failed."""
        count = self._of(work, at)
        count.failed += 1
        count.in_vain += again
        if len(count.runs) < MOST_RUNS and run not in count.runs:
            count.runs.append(run)
        self._error = error

    def told(self, now: Micros, trial: Trial | None) -> bytes:
        """Say it all, of many kinds the most frequent."""
        oldest = slot_of(now) - KEPT
        for slot in [slot for slot in self._slots if slot <= oldest]:
            del self._slots[slot]
        if not self._slots:
            self._error = ""
        often: dict[Work, int] = {}
        for counts in self._slots.values():
            for work, count in counts.items():
                often[work] = often.get(work, 0) + count.done + count.failed
        told = set(sorted(often, key=lambda work: (-often[work], work))[:MOST_WORKS])
        tallies = [
            Tally(slot, work, count.done, count.failed, count.cured, count.in_vain, tuple(count.runs))
            for slot, counts in sorted(self._slots.items())
            for work, count in sorted(counts.items())
            if work in told
        ]
        return encode(Doings(tuple(tallies), self._error, trial))

    def _of(self, work: Work, at: Micros) -> Count:
        counts = self._slots.setdefault(slot_of(at), {})
        count = counts.get(work)
        if count is None:
            count = counts[work] = Count()
        return count
