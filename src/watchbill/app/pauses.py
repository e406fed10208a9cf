"""Pauses: by whom a run is paused, why, and with which run. Pure."""

from typing import NamedTuple

from watchbill.app.opened import decision_in
from watchbill.clock import Micros
from watchbill.model.decision import Decision
from watchbill.model.facts import FactKind
from watchbill.model.pausing import Pause, pause_of
from watchbill.store.protocol import Record


class PauseSeen(NamedTuple):
    """One order by which a run is paused; what is None is not known here."""

    by: str | None
    reason: str | None
    at: Micros | None
    with_parent: bool
    run: str | None  # for which it was ordered, if that is a run above this one


def pauses_in(record: Record) -> list[PauseSeen]:
    """Give the orders by which a run is paused: its own first, then that for a run above it."""
    pause = pause_of(record.run.paused, record.run.pauses)
    own = [_seen(record, with_parent=False)] if Pause.OWN in pause else []
    return [*own, _seen(record, with_parent=True)] if Pause.PARENT in pause else own


def _seen(record: Record, *, with_parent: bool) -> PauseSeen:
    for row, at in reversed(record.decisions):
        decision = decision_in(row.body) if row.call == "" else Decision("", "")
        if decision.chosen == FactKind.PAUSE and bool(decision.run) is with_parent:
            return PauseSeen(row.actor, decision.message or None, at, with_parent, decision.run or None)
    return PauseSeen(None, None, None, with_parent, record.parent if with_parent else None)
