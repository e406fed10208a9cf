"""Unanswered: finds the question, or the decision, that keeps a run of a test from its end. Pure."""

from collections.abc import Sequence

from watchbill.model.question import InboxItem
from watchbill.model.run import FOR_MESSAGE, RunRow
from watchbill.model.states import RunState


def unanswered(id: str, live: Sequence[RunRow], inbox: Sequence[InboxItem], *, certain: bool) -> InboxItem | None:
    """Give the oldest item of a run, or of a run below it; `certain`: only if time alone moves none of these runs."""
    root = next((_root(row) for row in live if row.id == id), None)
    tree = {row.id: row for row in live if _root(row) == root}
    if certain and any(_may_move(row) for row in tree.values()):
        return None
    return next((item for item in inbox if item.run in tree), None)


def _root(row: RunRow) -> int:
    return row.root or row.num


def _may_move(row: RunRow) -> bool:
    """True if a timer, a step or a message may move a run. A running one keeps its timers in memory."""
    if row.held is not None:
        return False
    return row.status is not RunState.WAITING or row.wake_at is not None or FOR_MESSAGE in (row.waits or "")
