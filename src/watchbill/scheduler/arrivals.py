"""Arrivals: in which order a run is given what has arrived for it."""

from collections.abc import Collection, Iterator
from typing import Final

from watchbill.clock import Micros
from watchbill.flow.futures import Call
from watchbill.model.attempt import AttemptRow
from watchbill.scheduler.residence import Deadline
from watchbill.store.protocol import Fact

FROM_STORE: Final = (AttemptRow, Fact)  # once: `AttemptRow | Fact` makes a new type each time


def in_order(
    finals: Collection[AttemptRow], facts: Collection[Fact], timers: Collection[Call | Deadline] = ()
) -> list[AttemptRow | Fact | Call | Deadline]:
    """Put what arrived for a run into the order in which the store saw it; a timer comes after what was in time."""
    if len(finals) + len(facts) + len(timers) == 1:  # mostly one step has ended
        return [*finals, *facts, *timers]
    timed: list[tuple[Micros, int, int, AttemptRow | Fact | Call | Deadline]] = []
    timed.extend((row.ended_at or 0, 0, row.id, row) for row in finals)
    timed.extend((at, 1, fact.id, fact) for at, fact in _times(facts))
    timed.extend((due_time(call), 2, n, call) for n, call in enumerate(timers))
    return [arrived for _, _, _, arrived in sorted(timed, key=lambda item: item[:3])]


def _times(facts: Collection[Fact]) -> Iterator[tuple[Micros, Fact]]:
    """Give each fact with its time, or an earlier one: the clock of the store was ahead if a later fact has that."""
    at: Micros | None = None
    for fact in sorted(facts, key=lambda fact: fact.id, reverse=True):
        at = fact.at if at is None else min(fact.at, at)
        yield at, fact


def due_time(call: Call | Deadline) -> Micros:
    """Give the time of a timer."""
    assert call.due is not None  # noqa: S101 - only timers are asked
    return call.due
