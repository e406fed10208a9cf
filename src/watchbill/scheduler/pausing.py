"""Pausing: a run is paused or resumed, and the runs below it with it."""

import msgspec

from watchbill import events as happened
from watchbill.events import Event
from watchbill.model.facts import FactKind
from watchbill.model.pausing import Pause, PauseOrder, after, read_order
from watchbill.scheduler.batch import Batch
from watchbill.scheduler.notes import paused_by, resume_refused
from watchbill.store.protocol import Fact, TurnFact

FROM_PARENT = "parent "  # how the reference of a fact begins that the parent has sent

_encode = msgspec.json.Encoder().encode


def take_in(run: int, id: str, pause: Pause, fact: Fact, batch: Batch) -> Pause:
    """Take in a pause or a resume of a run; gives by what it is paused then. Its children are told by this turn."""
    order, pauses = read_order(fact.body), fact.kind is FactKind.PAUSE
    from_parent = fact.ref.startswith(FROM_PARENT)
    new = after(pause, order, pauses=pauses, from_parent=from_parent)
    if new == pause:
        if Pause.PARENT in pause and not pauses:
            batch.turn.decisions.append(resume_refused(run, fact))
        return new
    batch.turn.decisions.append(paused_by(run, fact, order))
    if bool(new) is not bool(pause):
        batch.turn.holds.append((run, bool(new)))
        kind = happened.RUN_PAUSED if new else happened.RUN_UNPAUSED
        batch.events.append(Event(kind, batch.now, "scheduler", id, cause=fact.actor, note=order.reason))
    if new.reaches_children is not pause.reaches_children:
        kind_told = FactKind.PAUSE if new.reaches_children else FactKind.RESUME
        passed_on = PauseOrder(order.reason, run=order.run or id)
        batch.tell(run, _to_children(run, kind_told, str(fact.id), fact.actor, passed_on))
    return new


def let_children_go(run: int, id: str, pause: Pause, batch: Batch) -> None:
    """Resume the children of a run that ends while it is paused: after that nobody can resume it."""
    if pause.reaches_children:
        order = PauseOrder("it has ended", run=id)
        batch.tell(run, _to_children(run, FactKind.RESUME, "ended", "run", order))


def _to_children(run: int, kind: FactKind, ref: str, actor: str, order: PauseOrder) -> TurnFact:
    return TurnFact(run, "", "", kind, f"{FROM_PARENT}{ref}", actor, _encode(order), children=True)
