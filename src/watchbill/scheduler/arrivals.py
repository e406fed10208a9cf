"""Arrivals: in which order a run is given what has arrived for it."""

from collections.abc import Collection
from operator import attrgetter
from typing import Final

from watchbill.clock import Micros
from watchbill.flow.futures import Call
from watchbill.model.attempt import AttemptRow
from watchbill.scheduler.residence import Deadline
from watchbill.store.protocol import Fact

_id = attrgetter("id")

FROM_STORE: Final = (AttemptRow, Fact)  # once: `AttemptRow | Fact` makes a new type each time


def in_order(
    finals: Collection[AttemptRow], facts: Collection[Fact], timers: Collection[Call | Deadline] = ()
) -> list[AttemptRow | Fact | Call | Deadline]:
    """Put what arrived for a run into the order in which the store saw it; a timer comes after what was in time."""
    if len(finals) + len(facts) + len(timers) == 1:  # mostly one step has ended
        return [*finals, *facts, *timers]
    timed: list[tuple[Micros, int, int, AttemptRow | Fact | Call | Deadline]] = []
    timed.extend((row.ended_at or 0, 0, row.id, row) for row in finals)
    latest = 0
    for fact in sorted(facts, key=_id):  # a clock that went back does not put a resume before its pause
        latest = max(latest, fact.at)
        timed.append((latest, 1, fact.id, fact))
    timed.extend((due_time(call), 2, n, call) for n, call in enumerate(timers))
    return [arrived for _, _, _, arrived in sorted(timed, key=lambda item: item[:3])]


def due_time(call: Call | Deadline) -> Micros:
    """Give the time of a timer."""
    assert call.due is not None  # noqa: S101 - only timers are asked
    return call.due
