"""Again: whether a run that lives has what shall be tried again. Pure: a record goes in."""

from collections.abc import Collection

from watchbill.app.opened import decision_in
from watchbill.errors import InvalidOptionError
from watchbill.flow.names import did_you_mean
from watchbill.model.attempt import AttemptRow, RowKind
from watchbill.model.call import step_name
from watchbill.model.states import AttemptState
from watchbill.store.protocol import Record

OVER = (AttemptState.DONE, AttemptState.GAVE_UP)


def check_retried(record: Record, step: str, known: Collection[str]) -> None:
    """Refuse a step, or the key of a call, by which nothing of a live run is known; `known`: steps of the code here.

    A call that is in the first second of its first attempt is in no record, so whatever the code has may be meant.
    """
    rows = [row for row in record.attempts if row.kind != RowKind.ASK]
    seen = {name for entry in record.journal for name in (entry.key, step_name(entry.key)) if name}
    if step in known or step in seen or any(step in _names(row, record) for row in rows):
        return
    said = f"no call of a step {step!r} is open in run {record.run.id!r}: nothing was changed"
    offered = {name for row in rows if row.state not in OVER for name in (row.call, _step_of(row))}
    if record.run.held is not None:
        said += "; it is held, and retry without a step lets it go on"
    elif not offered:
        said += "; no call of it is known that could be tried again"
    raise InvalidOptionError(said + did_you_mean(step, offered))


def _names(row: AttemptRow, record: Record) -> set[str]:
    """Give all that a call may be called by; another step may be called in its place, and its key be any text."""
    judged = {decision_in(decided.body).step for decided, _ in record.decisions if decided.call == row.call}
    return {row.call, step_name(row.call), row.step, *judged} - {""}


def _step_of(row: AttemptRow) -> str:
    """Give the step by whose name a call is tried again: on a rung its row may name another one."""
    return row.step if row.rung == 0 else step_name(row.call)
